package shard

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// openTogether is how many templates must wait so that a search opens them on all
// processors.
const openTogether = 16 * openBatch

// open opens every template of sl that waits when it is called; what others are at
// is waited for. Errors are the first template's that can't be opened, ctx's, or
// ErrClosed.
func (s *Shard) open(ctx context.Context, sl *slice, key *seal.Key) error {
	sl.templates.mu.Lock()
	waiting := len(sl.templates.waiting)
	sl.templates.mu.Unlock()
	if waiting < openTogether {
		return s.openSome(ctx, sl, key)
	}
	work, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() error { return s.openSome(ctx, sl, key) })
	}
	return work.Wait()
}

// openSome does the work of open on one goroutine; others may do so beside it.
func (s *Shard) openSome(ctx context.Context, sl *slice, key *seal.Key) error {
	var faces []kernel.Prepared
	for {
		mine, others := sl.templates.claim()
		if mine == nil {
			again, err := s.await(ctx, others)
			if err != nil || !again {
				return err
			}
			continue
		}
		if faces == nil {
			faces = make([]kernel.Prepared, openBatch)
		}
		m, n, err := s.prepare(sl, key, mine.entries, faces)
		err = sl.templates.settle(mine, m, faces[:n], err)
		for i := range faces[:n] {
			faces[i].Clear()
		}
		if err == nil {
			err = s.going(ctx)
		}
		if err != nil {
			return err
		}
		runtime.Gosched() // searches first
	}
}

// await waits for what others open; again tells that some of it was not opened.
func (s *Shard) await(ctx context.Context, others []*opening) (again bool, err error) {
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

// going tells whether a long piece of work may go on.
func (s *Shard) going(ctx context.Context) error {
	select {
	case <-s.closing:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// prepare decrypts entries and encodes them for m, up to the first that can't be.
func (s *Shard) prepare(sl *slice, key *seal.Key, entries []*entry, faces []kernel.Prepared) (m *kernel.Matrix, n int, err error) {
	if err := sl.lineage.pure(); err != nil {
		return nil, 0, err
	}
	var template []float32
	defer func() { clear(template[:cap(template)]) }()
	for _, e := range entries {
		sealed, err := s.keep.sealed(e)
		if err == nil {
			template, err = openTemplate(key, sl.ref(e), sealed, template[:0])
		}
		if err != nil {
			return m, n, err
		}
		if m == nil || m.Dim() != len(template) {
			m, err = sl.templates.matrixOf(s, len(template))
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

// openTemplate appends the numbers of a sealed face's template to dst.
func openTemplate(key *seal.Key, ref FaceRef, sealed []byte, dst []float32) ([]float32, error) {
	plain, err := openPlain(key, ref, sealed)
	if err != nil {
		return dst, err
	}
	defer clear(plain)
	for b := templateBytes(plain); len(b) > 0; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst, nil
}

// Warm opens the templates of a slice, so that the next search need not: on one
// goroutine that gives way to others. Without a slice there is nothing to do. Errors
// are as of Search.
func (s *Shard) Warm(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key) error {
	sl, done, err := s.enter(g, generation)
	if err == nil && sl != nil {
		defer done()
		err = s.openSome(ctx, sl, key)
	}
	if err != nil {
		return fmt.Errorf("open templates of gallery %s: %w", g, err)
	}
	return nil
}

// Cold is a slice with templates that are not open yet.
type Cold struct {
	Gallery    id.Gallery
	Generation uint32
	Templates  int
}

// Cold gives the slices that Warm has something to do for, in no order.
func (s *Shard) Cold() []Cold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []Cold
	for _, sl := range s.state.slices {
		sl.templates.mu.Lock()
		n := len(sl.templates.waiting)
		sl.templates.mu.Unlock()
		if n > 0 {
			list = append(list, Cold{sl.gallery, sl.generation, n})
		}
	}
	return list
}
