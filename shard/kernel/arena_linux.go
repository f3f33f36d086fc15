package kernel

import (
	"errors"
	"fmt"

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
