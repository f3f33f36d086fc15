package kernel

import "golang.org/x/sys/cpu"

// kernels returns the kernels that run here, the fastest first.
func kernels() []kernel {
	var list []kernel
	// The AVX-512 kernels reuse some loops of AVX2.
	if cpu.X86.HasAVX2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ {
		if cpu.X86.HasAVX512VNNI {
			list = append(list, kernel{"avx512 vnni", blocksVNNI, groupsVNNI, rowsVNNI, dotsAVX512, lanesVNNI, turnAVX512, 0, putAVX512, siftAVX512, fetchRows})
		}
		list = append(list, kernel{"avx512", nil, groupsAVX512, rowsAVX2, dotsAVX512, lanesAVX2, turnAVX2, lanesDrop, putAVX512, siftAVX512, fetchRows})
	}
	if cpu.X86.HasAVX2 {
		list = append(list, kernel{"avx2", blocksAVX2, groupsAVX2, rowsAVX2, dotsAVX2, lanesAVX2, turnAVX2, lanesDrop, putPortable, siftPortable, fetchRows})
	}
	return append(list, plain, portable)
}

//go:noescape
func blocksVNNI(p *plane)

//go:noescape
func groupsVNNI(p *plane)

//go:noescape
func blocksAVX2(p *plane)

//go:noescape
func groupsAVX2(p *plane)

//go:noescape
func rowsAVX2(r *rows)

// lanesDrop leaves six bits, whose products with those of a probe fit 16 bits two by two.
const lanesDrop = 2

//go:noescape
func lanesAVX2(l *lanes)

//go:noescape
func turnAVX2(t *turn)

//go:noescape
func dotsAVX2(d *dots)

//go:noescape
func groupsAVX512(p *plane)

//go:noescape
func rowsVNNI(r *rows)

//go:noescape
func dotsAVX512(d *dots)

//go:noescape
func turnAVX512(t *turn)

//go:noescape
func lanesVNNI(l *lanes)

//go:noescape
func fetchRows(rows []byte, list []uint16, stride, bytes int)

//go:noescape
func putAVX512(p *put)

//go:noescape
func siftAVX512(s *sift)
