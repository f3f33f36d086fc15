package shard

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"facet/shard/codes"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/seal"
	"facet/shard/segment"
)

// A segment's templates are encoded once: SaveCodes writes their codes into the segment's companion, and a
// start adds them to the matrix as cold rows. What has no codes on disk is opened as ever.
//
//	Loader.Load   notes the pieces of each companion           stored
//	open          pieces first, the last one first, in whole blocks; then what still waits
//	SaveCodes     the next segment without a companion, from the matrix
//
// The pieces are taken from the end, because the entries that wait are in the order of the log then,
// and the last one leaves their list without moving another.

// stored are the pieces of codes on disk that a slice has not opened yet. The mu of templates guards it.
type stored struct {
	pieces []storedPiece
	// entries are those of the slice as they were when it was loaded. They stay readable until unpin,
	// which is called when no piece is left and none of those taken is under way.
	entries *record.Order
	unpin   func()
	taken   int // under way
}

type storedPiece struct {
	of   segment.Hash
	head codes.Head
}

// errCoding is returned for codes of another coding than the matrix has.
var errCoding = errors.New("shard: the codes on disk are of another coding")

// companion notes the pieces that the companion of a segment has of the slices. It removes one that is
// damaged or has none.
func (l *Loader) companion(of segment.Hash) {
	if !l.store.Accompanied(of) {
		return
	}
	heads, err := headsOf(l.store, of)
	if err != nil || len(heads) == 0 {
		_ = l.store.Unaccompany(of) // SaveCodes writes another one
		return
	}
	for _, h := range heads {
		if sl := l.state.slices[h.Gallery]; sl != nil && sl.generation == h.Generation {
			sl.templates.stored.pieces = append(sl.templates.stored.pieces, storedPiece{of, h})
		}
	}
}

func headsOf(store *segment.Store, of segment.Hash) ([]codes.Head, error) {
	c, err := store.Companion(of)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return codes.Heads(c, c.Size())
}

// keepStored keeps the entries of slices with pieces as they are now.
func (st *state) keepStored() {
	for _, sl := range st.slices {
		if t := &sl.templates.stored; len(t.pieces) > 0 {
			t.entries, t.unpin = sl.entries.Copy(), sl.Pin()
		}
	}
}

// takeStored takes the last piece. Its caller calls endStored.
func (t *templates) takeStored() (p storedPiece, entries *record.Order, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.stored.pieces)
	if n == 0 {
		return p, nil, false
	}
	t.stored.taken++
	p, t.stored.pieces = t.stored.pieces[n-1], t.stored.pieces[:n-1]
	return p, t.stored.entries, true
}

// endStored ends the use of a piece.
func (t *templates) endStored() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stored.taken--
	t.stored.release()
}

// release lets the entries go when nobody needs them any more.
func (s *stored) release() {
	if s.unpin == nil || len(s.pieces) > 0 || s.taken > 0 {
		return
	}
	s.unpin()
	*s = stored{}
}

// storedRows returns how many rows the pieces on disk have.
func (t *templates) storedRows() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.stored.pieces {
		n += int64(t.stored.pieces[i].head.Rows)
	}
	return n
}

// openCodes opens what the slice has of codes on disk. Several goroutines may do so at once.
func (c *comparator) openCodes(ctx context.Context, sl *slice, key *seal.Key) error {
	var o codes.Opener
	defer o.Clear()
	for sl.models.checkOne() == nil && c.openPiece(sl, key, &o) {
		if err := c.going(ctx); err != nil {
			return err
		}
		runtime.Gosched() // lets searches run first
	}
	return nil
}

// openPiece opens one piece of codes, and reports whether there was one. The rows that it does not
// add wait on.
func (c *comparator) openPiece(sl *slice, key *seal.Key, o *codes.Opener) bool {
	p, entries, ok := sl.templates.takeStored()
	if !ok {
		return false
	}
	defer sl.templates.endStored()
	err := c.addPiece(sl, key, o, p, entries)
	if err != nil && !errors.Is(err, kernel.ErrMemory) && !errors.Is(err, segment.ErrMissing) {
		c.refused.Add(1)
		// SaveCodes writes another one. A companion that stays does no harm.
		_ = c.sealed.store.Unaccompany(p.of)
	}
	return true
}

// addPiece adds the codes of a piece to the matrix, block by block.
func (c *comparator) addPiece(sl *slice, key *seal.Key, o *codes.Opener, p storedPiece, entries *record.Order) error {
	m, err := sl.templates.matrixOf(c, c.table, p.head.Dim)
	if err != nil {
		return err
	}
	if m.CodingID() != p.head.Coding {
		return errCoding
	}
	file, err := c.sealed.store.Companion(p.of)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, blocks, err := o.Open(file, p.of, p.head, key)
	if err != nil {
		return err
	}
	found := named(entries, rows)
	for at := len(found) - kernel.BlockRows; at >= 0 && err == nil; at -= kernel.BlockRows {
		n := len(blocks) / len(found) * kernel.BlockRows
		err = sl.templates.addBlock(m, found[at:at+kernel.BlockRows], blocks[at/kernel.BlockRows*n:][:n])
	}
	return err
}

// named returns the active entries of rows, which ascend, or 0 for those that are not there.
func named(entries *record.Order, rows []codes.Row) []record.Row {
	found := make([]record.Row, len(rows))
	i := 0
	for row, e := range entries.All(rows[0].Sequence) {
		for i < len(rows) && rows[i].Sequence < e.Sequence() {
			i++
		}
		if i == len(rows) {
			break
		}
		if r := &rows[i]; r.Sequence == e.Sequence() && r.Event == e.Event && r.Revision == e.Revision && !e.Deleted {
			found[i] = row
		}
	}
	return found
}

// addBlock adds a block of entries that wait; those that don't are left out.
func (t *templates) addBlock(m *kernel.Matrix, rows []record.Row, block []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dropped || m != t.matrix {
		return nil
	}
	some := false
	for i, row := range slices.Backward(rows) {
		if row != 0 && t.entries.At(row).Place <= firstWaiting {
			t.unwait(row)
			some = true
		} else {
			rows[i] = 0
		}
	}
	if !some {
		return nil
	}
	slot, err := m.AddBlock(rows, block)
	for i, row := range rows {
		switch {
		case row == 0:
		case err != nil:
			t.wait(row)
		default:
			t.came(row, slot+i)
		}
	}
	return err
}
