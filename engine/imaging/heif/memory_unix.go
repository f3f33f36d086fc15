//go:build unix

package heif

import "syscall"

// reserve returns zeroed memory outside Go's heap. Untouched pages cost nothing.
func reserve(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func release(b []byte) error { return syscall.Munmap(b) }
