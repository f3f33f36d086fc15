//go:build !amd64 && !arm64

package kernel

// kernels returns the kernels that run here, the fastest first.
func kernels() []kernel { return []kernel{plain, portable} }
