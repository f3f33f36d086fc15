package kernel

// kernels gives the kernels that run here, the fastest first. Every arm64 has the instructions.
func kernels() []kernel {
	return []kernel{{name: "neon", dots: dotsNEON}, plain, portable}
}

//go:noescape
func dotsNEON(d *dots)
