//go:build !amd64 && !arm64

package kernel

// coders returns the coders that run here, the fastest first.
func coders() []coder { return []coder{portableCoder} }
