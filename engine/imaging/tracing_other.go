//go:build unix && !linux

package imaging

func barTracing() {}
