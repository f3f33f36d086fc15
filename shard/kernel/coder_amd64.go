package kernel

import "golang.org/x/sys/cpu"

// coders returns the coders that run here, the fastest first.
func coders() []coder {
	if !cpu.X86.HasAVX2 {
		return []coder{portableCoder}
	}
	return []coder{{"avx2", squaresAVX2, widenAVX2, flipAVX2, hadamardAVX2, codeAVX2, spreadAVX2}, portableCoder}
}

//go:noescape
func squaresAVX2(sums *laneSums, v []float32)

//go:noescape
func widenAVX2(to []float64, v []float32, signs []float64, scale float64)

//go:noescape
func flipAVX2(y, signs []float64)

//go:noescape
func hadamardAVX2(y []float64, scale float64)

//go:noescape
func codeAVX2(c *cells)

//go:noescape
func spreadAVX2(row []uint8) int
