package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

const (
	// readsMax is how many sealed faces all shards of a node read at once. So many keep a disk busy, and
	// delay an fsync beside them no more than reads of the page cache do (BenchmarkFsyncBesideFetches).
	readsMax = 8
	// readers is how many of these one fetch reads at once.
	readers = 8
	// turnRows is how many rows a reader reads before it gives its place to the next one: a twentieth of
	// a millisecond from the page cache, a millisecond from the disk.
	turnRows = 8
	// readersMax is how many readers may wait.
	readersMax = 1 << 20
)

// reads are the places of the readers. A gallery that has read less than others comes first, so the
// searches of one gallery can't keep those of another waiting.
var reads = fair.NewQueue(readsMax, readersMax)

// source reads the templates whose exact rows are not in memory. It implements kernel.Source.
type source struct {
	store *sealedStore
	sl    *slice
	// key is the gallery's key, as the last search or Warm gave it.
	key atomic.Pointer[seal.Key]
}

var _ kernel.Source = (*source)(nil)

// errNoKey is returned when exact rows are wanted before a search or Warm gave the gallery's key.
var errNoKey = errors.New("shard: the key of the gallery is not known yet")

// Fetch reads and decrypts the templates of events.
func (c *source) Fetch(ctx context.Context, owners []uint32, to func(i int, template []float32)) error {
	key := c.key.Load()
	if key == nil {
		return errNoKey
	}
	set := c.store.current()
	defer set.Release()
	f := fetch{source: c, key: key, set: set, owners: owners, to: to}
	var others errgroup.Group
	for range min(len(owners), readers) - 1 {
		others.Go(func() error { return f.run(ctx) })
	}
	err := f.run(ctx)
	return cmp.Or(err, others.Wait())
}

// fetch is a Fetch that several goroutines run.
type fetch struct {
	source *source
	key    *seal.Key
	set    *segment.Set
	owners []uint32
	to     func(i int, template []float32)
	next   atomic.Int64 // index of owners
}

// run reads owners until none is left. An error ends the other goroutines, too.
func (f *fetch) run(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			f.next.Store(int64(len(f.owners)))
		}
	}()
	u := newUnsealer(f.source.store, f.key)
	defer u.free()
	for more := true; more && err == nil && int(f.next.Load()) < len(f.owners); {
		// A replica does not know the tenant: each gallery has a line.
		turn, waited := reads.Enter(ctx, id.Tenant(f.source.sl.gallery))
		if waited != nil {
			return fmt.Errorf("wait for the disk: %w", waited)
		}
		more, err = f.some(u)
		turn.End()
	}
	return err
}

// some reads up to turnRows owners. more reports whether there may be others.
func (f *fetch) some(u *unsealer) (more bool, err error) {
	for range turnRows {
		i := int(f.next.Add(1)) - 1
		if i >= len(f.owners) {
			return false, nil
		}
		template, err := f.source.read(u, f.set, f.owners[i])
		if err != nil {
			return false, err
		}
		if template != nil {
			f.to(i, template)
		}
	}
	return true, nil
}

// read returns the template of an event, valid until the next call, or nil if the event is gone.
func (c *source) read(u *unsealer, set *segment.Set, row record.Row) ([]float32, error) {
	e := c.sl.At(row)
	template, err := u.openOne(set, c.sl.ref(e), e)
	if errors.Is(err, segment.ErrMissing) && c.sl.templates.gone(e) {
		return nil, nil
	}
	return template, err
}

// gone reports whether an entry is no longer active.
func (t *templates) gone(e *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return e.Place == gone || t.dropped
}

// pick returns the slice that was searched longest ago of those with something to release or, with
// cold, the slice that was searched last of those with rows on disk only. Without one it returns nil.
// The caller calls done.
func (s *Shard) pick(cold bool) (best *slice, searched int64, done func()) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, 0, nil
	}
	for _, sl := range s.state.slices {
		at := sl.searched.Load()
		if sl.templates.residence(cold) && (best == nil || (at > searched) == cold) {
			best, searched = sl, at
		}
	}
	if best == nil {
		return nil, 0, nil
	}
	s.using.Add(1)
	unpin := best.Pin()
	return best, searched, func() { unpin(); s.using.Done() }
}

// NextExact returns when the gallery was searched, in milliseconds since 1970, whose rows Chill releases
// next or, with back, Thaw reads next. ok is false if there are none.
func (s *Shard) NextExact(back bool) (searched int64, ok bool) {
	sl, searched, done := s.pick(back)
	if sl == nil {
		return 0, false
	}
	done()
	return searched, true
}

// Chill releases a piece of the exact rows of the gallery that was searched longest ago. It returns
// the bytes that it released.
func (s *Shard) Chill() (freed int64) {
	sl, _, done := s.pick(false)
	if sl == nil {
		return 0
	}
	defer done()
	return sl.templates.chill()
}

// MemoryShort says whether memory is short: then templates that are opened leave their exact rows on disk.
func (c *comparator) MemoryShort(short bool) { c.short.Store(short) }

// Thaw reads a piece of the exact rows of the gallery that was searched last, and returns the bytes
// that they take. It returns 0 if all are in memory. Errors are those of Search.
func (s *Shard) Thaw(ctx context.Context) (taken int64, err error) {
	sl, _, done := s.pick(true)
	if sl == nil {
		return 0, nil
	}
	defer done()
	if taken, err = sl.templates.thaw(ctx); err != nil {
		err = fmt.Errorf("read templates of gallery %s: %w", sl.gallery, err)
	}
	return taken, err
}

// ColdRows returns how many exact rows are on disk only.
func (s *Shard) ColdRows() (rows int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, sl := range s.state.slices {
		rows += sl.templates.cold()
	}
	return rows
}

func (t *templates) cold() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix == nil {
		return 0
	}
	return t.matrix.Cold()
}

// residence reports whether some exact rows can be released or, with cold, are on disk only.
func (t *templates) residence(cold bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix == nil {
		return false
	}
	if cold {
		return t.matrix.Cold() > 0
	}
	return t.matrix.Chills()
}

func (t *templates) chill() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix == nil {
		return 0
	}
	return t.matrix.Chill()
}

// chillAll releases all exact rows that can be released.
func (t *templates) chillAll() {
	for t.chill() > 0 {
	}
}

func (t *templates) thaw(ctx context.Context) (taken int64, err error) {
	t.mu.Lock()
	m := t.matrix
	t.mu.Unlock()
	if m == nil {
		return 0, nil
	}
	return m.Thaw(ctx, func(write func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		write()
	})
}
