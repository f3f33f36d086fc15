package kernel

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	// Huge pages halve the time of a scan; a kernel without them is no error. A core
	// dump must not hold templates.
	for _, advice := range []int{unix.MADV_HUGEPAGE, unix.MADV_DONTDUMP} {
		if err := unix.Madvise(b, advice); err != nil && !errors.Is(err, unix.EINVAL) {
			return nil, errors.Join(fmt.Errorf("advise on %d bytes: %w", n, err), unix.Munmap(b))
		}
	}
	return b, nil
}

func unmapMemory(b []byte) error { return unix.Munmap(b) }

// discardMemory reports whether the system took the pages of b back. They read as zeros afterwards. Advising on a part of a page would take the rest of the page, too.
func discardMemory(b []byte) bool {
	page := os.Getpagesize()
	if len(b) == 0 || len(b)%page != 0 || uintptr(unsafe.Pointer(&b[0]))%uintptr(page) != 0 {
		return false
	}
	return unix.Madvise(b, unix.MADV_DONTNEED) == nil
}
