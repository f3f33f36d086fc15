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
	exactPool
	recordPool
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
	free    map[size][][]byte
	bare    map[size][][]byte // free, and the system has the pages back
	used    [poolCount]int64  // bytes handed out and not freed
	held    int64             // bytes of the system: used, or in free
	// recordExtents are freed after Close, with the last records of them.
	recordExtents [][]byte
	closed        bool
}

// Use is how many bytes of an arena are in use, by kind.
type Use struct {
	Planes int64 // of 4-bit codes
	Codes  int64 // of 8 bits, and the exact rows of small matrices
	Exact  int64 // rows of float32 numbers
	// Records are those of events.
	Records int64
}

// size is the pool and the length of a piece of memory. Pieces of one size replace each other.
type size struct {
	pool  pool
	bytes int
}

// NewArena returns an arena that hands out at most limit bytes; 0 is no limit.
func NewArena(limit int64) *Arena {
	return &Arena{limit: limit, free: make(map[size][][]byte), bare: make(map[size][][]byte)}
}

// Used returns the number of bytes handed out.
func (a *Arena) Used() (sum int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.used {
		sum += n
	}
	return sum
}

// Use returns the bytes handed out, by kind.
func (a *Arena) Use() Use {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Use{Planes: a.used[firstPool] + a.used[secondPool], Codes: a.used[rowPool], Exact: a.used[exactPool], Records: a.used[recordPool]}
}

// Close frees all memory but the records that are in use, which are freed with the last of them. No
// matrix of the arena may be in use.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	err := unmapAll(a.extents)
	rest := a.rest[recordPool]
	records := a.used[recordPool]
	a.extents, a.rest, a.used, a.held = nil, [poolCount][]byte{recordPool: rest}, [poolCount]int64{recordPool: records}, records
	clear(a.bare)
	for s := range a.free {
		if s.pool != recordPool {
			delete(a.free, s)
		}
	}
	return errors.Join(err, a.freeRecords())
}

// freeRecords frees the memory of records after Close, if none is in use.
func (a *Arena) freeRecords() error {
	if !a.closed || a.used[recordPool] > 0 {
		return nil
	}
	err := unmapAll(a.recordExtents)
	a.recordExtents, a.rest[recordPool] = nil, nil
	clear(a.free)
	return err
}

func unmapAll(extents [][]byte) (first error) {
	for _, e := range extents {
		if err := unmapMemory(e); err != nil && first == nil {
			first = fmt.Errorf("unmap %d bytes of templates: %w", len(e), err)
		}
	}
	return first
}

// Records returns n zeroed bytes for records of events. The limit does not hold for them, because a
// write that is committed must not fail.
func (a *Arena) Records(n int) []byte {
	b, err := a.alloc(recordPool, n)
	if err != nil {
		panic(fmt.Sprintf("no memory for the records of events: %v", err))
	}
	return b
}

// ReleaseRecords takes bytes back that Records returned.
func (a *Arena) ReleaseRecords(b []byte) {
	a.release(recordPool, b)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.freeRecords(); err != nil {
		panic("bug: kernel: " + err.Error())
	}
}

// alloc returns n zeroed bytes that start at a cache line.
func (a *Arena) alloc(p pool, n int) ([]byte, error) {
	n = (n + lineBytes - 1) / lineBytes * lineBytes
	a.mu.Lock()
	defer a.mu.Unlock()
	if b := take(a.free, size{p, n}); b != nil {
		a.used[p] += int64(n)
		return b, nil
	}
	if a.limit > 0 && p != recordPool && a.held+int64(n) > a.limit {
		return nil, fmt.Errorf("%w: %d bytes of %d in use, %d more wanted", ErrMemory, a.held, a.limit, n)
	}
	if b := take(a.bare, size{p, n}); b != nil {
		a.used[p] += int64(n)
		a.held += int64(n)
		return b, nil
	}
	if len(a.rest[p]) < n {
		e, err := mapMemory(max(extentBytes, n))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMemory, err)
		}
		if p == recordPool {
			a.recordExtents = append(a.recordExtents, e)
		} else {
			a.extents = append(a.extents, e)
		}
		a.rest[p] = e
	}
	b := a.rest[p][:n:n]
	a.rest[p] = a.rest[p][n:]
	a.used[p] += int64(n)
	a.held += int64(n)
	return b, nil
}

// take removes and returns a piece of memory of this size; nil if there is none.
func take(from map[size][][]byte, s size) []byte {
	list := from[s]
	if len(list) == 0 {
		return nil
	}
	b := list[len(list)-1]
	from[s] = list[:len(list)-1]
	return b
}

// release zeroes b, which alloc returned, and keeps it for the next alloc of its pool and size.
func (a *Arena) release(p pool, b []byte) {
	clear(b)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free[size{p, len(b)}] = append(a.free[size{p, len(b)}], b)
	a.used[p] -= int64(len(b))
}

// discard is release that gives the pages back to the system and keeps the addresses only. b must
// consist of whole pages, or it is kept as by release.
func (a *Arena) discard(p pool, b []byte) {
	clear(b) // or templates would stay in memory that nobody owns
	if !discardMemory(b) {
		a.release(p, b)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bare[size{p, len(b)}] = append(a.bare[size{p, len(b)}], b)
	a.used[p] -= int64(len(b))
	a.held -= int64(len(b))
}
