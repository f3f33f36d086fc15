package kernel

import (
	"errors"
	"fmt"
	"sync"
)

const (
	// extentBytes is how much memory an arena asks the system for at a time. Pages count as used
	// only when rows are written to them.
	extentBytes = 64 << 20
	lineBytes   = 64
)

// pool is a use of an arena's memory. Each pool has extents of its own, so that the planes of
// successive chunks are neighbours. Reading planes in runs of 72 KiB took 1.7 times as long as in
// one run.
type pool int

const (
	firstPool pool = iota
	secondPool
	rowPool
	poolCount
)

// ErrMemory is returned when the arena's limit is reached, or the system has no memory left.
var ErrMemory = errors.New("kernel: no memory for templates")

// Arena hands out chunks outside the Go heap, in huge pages where the system has them. It zeroes
// freed chunks and reuses them for chunks of the same size. The matrices of many slices share it,
// and it is safe for concurrent use.
type Arena struct {
	limit   int64
	codings codings // of the matrices

	mu      sync.Mutex
	extents [][]byte
	rest    [poolCount][]byte // unused part of each pool's last extent
	free    map[int][][]byte  // by size
	used    int64             // bytes handed out and not freed
	held    int64             // bytes ever handed out: used, or in free
}

// NewArena returns an arena that hands out at most limit bytes; 0 is no limit.
func NewArena(limit int64) *Arena {
	return &Arena{limit: limit, free: make(map[int][][]byte)}
}

// Used returns the number of bytes handed out.
func (a *Arena) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Close frees all memory. No matrix of the arena may be in use.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	var first error
	for _, e := range a.extents {
		if err := unmapMemory(e); err != nil && first == nil {
			first = fmt.Errorf("unmap %d bytes of templates: %w", len(e), err)
		}
	}
	a.extents, a.rest, a.used, a.held = nil, [poolCount][]byte{}, 0, 0
	clear(a.free)
	return first
}

// alloc returns n zeroed bytes that start at a cache line.
func (a *Arena) alloc(p pool, n int) ([]byte, error) {
	n = (n + lineBytes - 1) / lineBytes * lineBytes
	a.mu.Lock()
	defer a.mu.Unlock()
	if list := a.free[n]; len(list) > 0 {
		b := list[len(list)-1]
		a.free[n] = list[:len(list)-1]
		a.used += int64(n)
		return b, nil
	}
	if a.limit > 0 && a.held+int64(n) > a.limit {
		return nil, fmt.Errorf("%w: %d bytes of %d in use, %d more wanted", ErrMemory, a.held, a.limit, n)
	}
	if len(a.rest[p]) < n {
		e, err := mapMemory(max(extentBytes, n))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMemory, err)
		}
		a.extents = append(a.extents, e)
		a.rest[p] = e
	}
	b := a.rest[p][:n:n]
	a.rest[p] = a.rest[p][n:]
	a.used += int64(n)
	a.held += int64(n)
	return b, nil
}

// release zeroes b, which alloc returned, and keeps it for the next alloc of its size.
func (a *Arena) release(b []byte) {
	clear(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free[len(b)] = append(a.free[len(b)], b)
	a.used -= int64(len(b))
}
