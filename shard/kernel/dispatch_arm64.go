package kernel

import "golang.org/x/sys/cpu"

// kernels returns the kernels that run here, the fastest first.
func kernels() []kernel {
	var list []kernel
	if cpu.ARM64.HasASIMDDP {
		list = append(list, kernel{"neon dot product", nil, groupsDot, rowsDot, dotsNEON, lanesDot, turnNEON, 0, putPortable, siftPortable, fetchRows})
	}
	// Every arm64 processor has these instructions.
	list = append(list, kernel{"neon", nil, groupsNEON, rowsNEON, dotsNEON, nil, nil, 0, putPortable, siftPortable, fetchRows})
	return append(list, plain, portable)
}

//go:noescape
func groupsDot(p *plane)

//go:noescape
func groupsNEON(p *plane)

//go:noescape
func rowsDot(r *rows)

//go:noescape
func rowsNEON(r *rows)

//go:noescape
func dotsNEON(d *dots)

//go:noescape
func turnNEON(t *turn)

//go:noescape
func lanesDot(l *lanes)

//go:noescape
func fetchRows(rows []byte, list []uint16, stride, bytes int)
