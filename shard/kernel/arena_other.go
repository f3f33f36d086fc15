//go:build !linux

package kernel

import "unsafe"

// mapMemory allocates in the Go heap.
func mapMemory(n int) ([]byte, error) {
	b := make([]byte, n+lineBytes)
	off := -int(uintptr(unsafe.Pointer(&b[0]))) & (lineBytes - 1)
	return b[off : off+n : off+n], nil
}

func unmapMemory([]byte) error { return nil }

func discardMemory([]byte) bool { return false }
