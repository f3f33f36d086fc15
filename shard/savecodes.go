package shard

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"facet/shard/codes"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// Saved reports what SaveCodes wrote.
type Saved struct {
	Files int // none or one
	Rows  int
	Bytes int64
}

// RefusedCodes returns how many pieces of codes could not be used since the last call: their templates were
// encoded again.
func (c *comparator) RefusedCodes() int64 { return c.refused.Swap(0) }

// SaveCodes writes the codes of the oldest segment that has none yet and at least so many faces. It writes
// nothing if all segments have theirs, or while as many templates wait to be opened. A segment that is
// replaced meanwhile is no error. SaveCodes may run beside everything else, but not twice at once.
func (s *Shard) SaveCodes(ctx context.Context, least uint64) (saved Saved, err error) {
	save, ok := s.nextSaving(least)
	if !ok {
		return saved, nil
	}
	defer save.done()
	w, err := s.sealed.store.Accompany(save.of)
	if err != nil {
		return saved, missingIsNone(err)
	}
	save.to = codes.Writer{To: w, Of: save.of}
	for _, sl := range save.slices {
		if err := save.slice(ctx, sl); err != nil {
			return Saved{}, errors.Join(fmt.Errorf("save the codes of gallery %s: %w", sl.gallery, err), w.Cancel())
		}
	}
	if err := w.Close(); err != nil {
		return Saved{}, missingIsNone(err)
	}
	save.saved.Files = 1
	return save.saved, nil
}

func missingIsNone(err error) error {
	if errors.Is(err, segment.ErrMissing) {
		return nil
	}
	return err
}

// saving is a SaveCodes. It has no reference on the segment, which an erasure may remove meanwhile.
type saving struct {
	shard       *Shard
	of          segment.Hash
	first, last uint64
	slices      []*slice
	done        func()
	saved       Saved
	to          codes.Writer
}

// nextSaving returns the saving that is due.
func (s *Shard) nextSaving(least uint64) (save *saving, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed || s.sealed.store == nil {
		return nil, false
	}
	s.sealed.mu.RLock()
	defer s.sealed.mu.RUnlock()
	for _, p := range s.sealed.set.Parts() {
		_, faces := p.File.Records()
		if of := p.File.Ref().Hash; faces >= least+uint64(p.DeadSealed) && !s.sealed.store.Accompanied(of) {
			save = &saving{shard: s, of: of}
			save.first, save.last = p.File.Range()
			break
		}
	}
	if save == nil {
		return nil, false
	}
	for _, sl := range s.state.slices {
		if uint64(sl.templates.waitingNow()) >= least {
			return nil, false
		}
	}
	s.using.Add(1)
	unpin := []func(){s.using.Done}
	for _, sl := range s.state.slices {
		save.slices, unpin = append(save.slices, sl), append(unpin, sl.Pin())
	}
	save.done = func() {
		for _, unpin := range unpin {
			unpin()
		}
	}
	return save, true
}

// slice writes pieces of what the segment has of a slice.
func (w *saving) slice(ctx context.Context, sl *slice) error {
	key, m := sl.source.key.Load(), sl.templates.present()
	if key == nil || m == nil {
		return nil
	}
	p := piece{
		at:     codes.Place{Gallery: sl.gallery, Generation: sl.generation, Coding: m.CodingID(), Dim: m.Dim()},
		blocks: make([]byte, (codes.PieceRows+kernel.BlockRows)/kernel.BlockRows*m.BlockBytes()),
	}
	defer clear(p.blocks)
	for next := w.first; next <= w.last; {
		var rows []record.Row
		rows, next = w.some(sl, next)
		for some := range slices.Chunk(rows, kernel.BlockRows) {
			sl.templates.copyTo(&p, m, some)
			if len(p.rows) < codes.PieceRows {
				continue
			}
			if err := w.write(key, m, &p); err != nil {
				return err
			}
		}
		if err := w.shard.going(ctx); err != nil {
			return err
		}
		runtime.Gosched()
	}
	return w.write(key, m, &p)
}

// piece is a piece being filled. It has room for a block more than a full one.
type piece struct {
	at     codes.Place
	rows   []codes.Row
	blocks []byte
}

// some returns some rows of the slice's active entries from the sequence next on, which are in the
// segment, and where to go on.
func (w *saving) some(sl *slice, next uint64) (rows []record.Row, then uint64) {
	w.shard.mu.RLock()
	defer w.shard.mu.RUnlock()
	for row, e := range sl.entries.All(next) {
		if e.Sequence() > w.last {
			break
		}
		if len(rows) == codes.PieceRows {
			return rows, e.Sequence()
		}
		if !e.Deleted {
			rows = append(rows, row)
		}
	}
	return rows, w.last + 1
}

// copyTo adds the codes of entries that are in m, at most a block of them.
func (t *templates) copyTo(p *piece, m *kernel.Matrix, rows []record.Row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped || m != t.matrix {
		return
	}
	for _, row := range rows {
		e := t.entries.At(row)
		block, at := len(p.rows)/kernel.BlockRows, len(p.rows)%kernel.BlockRows
		if e.Place >= 0 && m.CopyCodes(p.blocks[block*m.BlockBytes():][:m.BlockBytes()], at, int(e.Place)) {
			p.rows = append(p.rows, codes.Row{Sequence: e.Sequence(), Event: e.Event, Revision: e.Revision})
		}
	}
}

// write writes the whole blocks of a piece, and keeps the others for the next one.
func (w *saving) write(key *seal.Key, m *kernel.Matrix, p *piece) error {
	whole := len(p.rows) / kernel.BlockRows
	if whole == 0 {
		return nil
	}
	rows, bytes := whole*kernel.BlockRows, whole*m.BlockBytes()
	if err := w.to.Piece(key, p.at, p.rows[:rows], p.blocks[:bytes]); err != nil {
		return err
	}
	w.saved.Rows, w.saved.Bytes = w.saved.Rows+rows, w.saved.Bytes+int64(bytes)
	copy(p.blocks, p.blocks[bytes:])
	p.rows = append(p.rows[:0], p.rows[rows:]...)
	return nil
}

// present returns the matrix, or nil.
func (t *templates) present() *kernel.Matrix {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.matrix
}
