package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// hugeMemory gives memory in huge pages, if the system has some, until it is released.
func hugeMemory(size int) (memory []byte, release func() error, err error) {
	memory, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, nil, fmt.Errorf("map memory to read: %w", err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // small pages will do
	return memory, func() error { return unix.Munmap(memory) }, nil
}
