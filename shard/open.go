package shard

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/stale"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// comparator opens the templates of slices and compares probes with them. Writes may change a slice at the
// same time: only what says so needs Shard.mu.
type comparator struct {
	table  *score.Table
	arena  *kernel.Arena
	sealed sealedStore
	// passes is how many scans of a slice run at once.
	passes int
	// closing is closed to end searches and openings.
	closing chan struct{}
	// short reports that opened templates should not stay in memory (MemoryShort). refused counts the
	// pieces of codes on disk that could not be used.
	short   atomic.Bool
	refused atomic.Int64
}

// openTogether is the number of waiting templates from which all processors open them.
const openTogether = 16 * openBatch

// open opens every template of sl that waits at the time of the call. It also waits for the
// templates that other goroutines open. It returns the error of the first template that can't be
// opened, the error of ctx, or ErrClosed.
func (c *comparator) open(ctx context.Context, sl *slice, key *seal.Key) error {
	sl.source.key.Store(key)
	return together(ctx, sl.templates.waitingNow(), func(ctx context.Context) error { return c.openSome(ctx, sl, key) })
}

// together runs work once, or on all processors if enough templates wait.
func together(ctx context.Context, waiting int, work func(context.Context) error) error {
	if waiting < openTogether {
		return work(ctx)
	}
	all, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() error { return work(ctx) })
	}
	return all.Wait()
}

// openSome does the work of open on one goroutine. Several may run at once.
func (c *comparator) openSome(ctx context.Context, sl *slice, key *seal.Key) error {
	if err := c.openCodes(ctx, sl, key); err != nil {
		return err
	}
	var faces []kernel.Prepared
	u := unsealer{store: &c.sealed, key: key}
	defer u.clear()
	for {
		mine, others := sl.templates.take()
		if mine == nil {
			again, err := await(ctx, others)
			if err != nil || !again {
				return err
			}
			continue
		}
		if faces == nil {
			faces = make([]kernel.Prepared, openBatch)
		}
		m, n, err := c.prepare(sl, &u, mine.rows, faces)
		err = sl.templates.settle(mine, m, faces[:n], err)
		for i := range faces[:n] {
			faces[i].Clear()
		}
		if c.short.Load() {
			sl.templates.chillAll()
		}
		if err == nil {
			err = c.going(ctx)
		}
		if err != nil {
			return err
		}
		runtime.Gosched() // lets searches run first
	}
}

// await waits for the openings of other goroutines. again reports that one of them failed.
func await(ctx context.Context, others []*opening) (again bool, err error) {
	for _, o := range others {
		select {
		case <-o.done:
			again = again || o.failed
		case <-ctx.Done():
			return false, fmt.Errorf("wait for templates: %w", ctx.Err())
		}
	}
	return again, nil
}

// going returns an error if a long piece of work must stop.
func (c *comparator) going(ctx context.Context) error {
	select {
	case <-c.closing:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// prepare decrypts entries and encodes them for m. It stops at the first that can't be decrypted or
// encoded.
func (c *comparator) prepare(sl *slice, u *unsealer, rows []record.Row, faces []kernel.Prepared) (m *kernel.Matrix, n int, err error) {
	if err := sl.models.checkOne(); err != nil {
		return nil, 0, err
	}
	set := c.sealed.current()
	defer set.Release()
	for _, row := range rows {
		e := sl.At(row)
		template, err := u.open(set, sl.ref(e), e)
		if err != nil {
			return m, n, err
		}
		if m == nil || m.Dim() != len(template) {
			m, err = sl.templates.matrixOf(c, c.table, len(template))
		}
		if err == nil {
			err = m.Prepare(&faces[n], template)
		}
		if err != nil {
			return m, n, fmt.Errorf("open face of event %s: %w", e.Event, err)
		}
		n++
	}
	return m, n, nil
}

// unsealer opens the templates of entries in memory of its own, for one goroutine. The caller
// clears it at the end.
type unsealer struct {
	store *sealedStore
	key   *seal.Key

	cursor   segment.Cursor
	single   segment.Single
	opener   opener
	template []float32
}

// unsealers keeps the memory of unsealers for reuse.
var unsealers = sync.Pool{New: func() any { return new(unsealer) }}

// newUnsealer returns an unsealer with used memory. The caller calls free instead of clear.
func newUnsealer(store *sealedStore, key *seal.Key) *unsealer {
	u := unsealers.Get().(*unsealer) //nolint:forcetypeassert // of unsealers
	u.store, u.key = store, key
	return u
}

func (u *unsealer) free() {
	u.clear()
	u.store, u.key, u.cursor = nil, nil, segment.Cursor{}
	unsealers.Put(u)
}

// open returns the template of an entry, valid until the next call. set is a set that the shard has
// had, or nil. If set lacks the entry, open looks it up in the present set.
func (u *unsealer) open(set *segment.Set, ref FaceRef, e *entry) ([]float32, error) {
	sealed, err := u.store.readBy(&u.cursor, set, e)
	if err != nil {
		return nil, fmt.Errorf("read face of event %s: %w", e.Event, err)
	}
	return u.decode(ref, sealed)
}

// openOne does what open does, for an entry whose neighbours are not wanted.
func (u *unsealer) openOne(set *segment.Set, ref FaceRef, e *entry) ([]float32, error) {
	if e.SealedLen > 0 && e.Sequence() <= set.Last() {
		sealed, err := set.SealedAlone(&u.single, e.Sequence(), int(e.SealedLen)+int(e.NoteLen))
		if err == nil {
			face, _ := split(e, sealed)
			if template, err := u.decode(ref, face); err == nil {
				return template, nil
			}
		}
	}
	// The record is not in set, or is not proven: parts finds out whether the disk has damaged it.
	sealed, _, err := u.store.parts(e)
	if err != nil {
		return nil, fmt.Errorf("read face of event %s: %w", e.Event, err)
	}
	return u.decode(ref, sealed)
}

func (u *unsealer) decode(ref FaceRef, sealed []byte) ([]float32, error) {
	plain, err := u.opener.open(u.key, ref, sealed)
	if err != nil {
		return nil, err
	}
	b := templateBytes(plain)
	u.template = slices.Grow(u.template[:0], len(b)/4)[:len(b)/4]
	stale.Fill(u.template)
	for i := range u.template {
		u.template[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return u.template, nil
}

func (u *unsealer) clear() {
	u.opener.clear()
	clear(u.template[:cap(u.template)])
}

// Warm opens the templates of a slice, so that the next search need not. It yields often, and opens
// many templates on all processors. It derives the means of a slice that has them. Without a slice it
// does nothing. Errors are those of Search.
func (s *Shard) Warm(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key) error {
	sl, done, err := s.enter(g, generation)
	if err == nil && sl != nil {
		defer done()
		if err = s.open(ctx, sl, key); err == nil && sl.means.Load() != nil {
			err = s.derive(ctx, sl, sl.means.Load(), key)
		}
	}
	if err != nil {
		return fmt.Errorf("open templates of gallery %s: %w", g, err)
	}
	return nil
}

// Cold is a slice with templates, means included, that are not open yet.
type Cold struct {
	Gallery    id.Gallery
	Generation uint32
	Templates  int
}

// Cold returns the slices that need Warm, in no order.
func (s *Shard) Cold() []Cold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []Cold
	for _, sl := range s.state.slices {
		if n := sl.templates.waitingNow() + sl.means.Load().waiting(); n > 0 {
			list = append(list, Cold{sl.gallery, sl.generation, n})
		}
	}
	return list
}
