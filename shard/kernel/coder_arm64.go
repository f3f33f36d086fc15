package kernel

// coders returns the coders that run here, the fastest first. Every arm64 has the instructions.
func coders() []coder {
	return []coder{{"neon", squaresNEON, widenNEON, flipNEON, hadamardNEON, codeNEON, spreadNEON}, portableCoder}
}

//go:noescape
func squaresNEON(sums *laneSums, v []float32)

//go:noescape
func widenNEON(to []float64, v []float32, signs []float64, scale float64)

//go:noescape
func flipNEON(y, signs []float64)

//go:noescape
func hadamardNEON(y []float64, scale float64)

//go:noescape
func codeNEON(c *cells)

//go:noescape
func spreadNEON(row []uint8) int
