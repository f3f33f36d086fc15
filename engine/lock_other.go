//go:build !unix

package engine

// locked does nothing on this system.
type locked struct{}

func (*locked) hold([]uint8) {}
func (*locked) release()     {}
