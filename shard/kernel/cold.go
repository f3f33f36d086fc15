package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
)

const (
	// oddMost is how many rows without bounds a chunk may have that becomes cold: every search
	// fetches them.
	oddMost = 8
	// thawTries is how often Thaw fetches the rows that were replaced while it fetched others.
	thawTries = 8
)

// ErrSource is returned when a Source has given a template that isn't that of the row, or has none
// for a row that stays.
var ErrSource = errors.New("kernel: exact rows can't be fetched")

// Source has the exact templates of cold rows, bit for bit as they were added. Its method may be
// called from any goroutine.
type Source interface {
	// Fetch calls to with the index of each owner and its template, which need not outlive the call.
	// Several goroutines may call to at once, but none after Fetch has returned. Fetch leaves out
	// owners that are gone by now; a template that can't be read is an error.
	Fetch(ctx context.Context, owners []uint32, to func(i int, template []float32)) error
}

// Attach sets the source of the rows that Chill makes cold. It belongs before the first Chill.
func (m *Matrix) Attach(source Source) { m.source = source }

// Chill makes one chunk cold: it releases the exact rows, of which the source must have all that
// are used, and all that Add will put into the chunk. Full chunks come first, the oldest of them
// before the others. It returns the number of bytes that it released, or that the passes under way
// will, or 0 if no chunk is left. It belongs to the writer, and does not wait for searches.
func (m *Matrix) Chill() (freed int64) {
	for _, full := range []bool{true, false} {
		for _, c := range *m.chunks.Load() {
			if c.exact.Load() == nil || (c.first+c.slots <= m.slots) != full || !c.chills() {
				continue
			}
			return m.chill(c)
		}
	}
	return 0
}

func (m *Matrix) chill(c *chunk) (freed int64) {
	exact := *c.exact.Swap(nil)
	m.discard(m.passes.retire(exact))
	return int64(len(exact))
}

func (m *Matrix) discard(unread [][]byte) {
	for _, exact := range unread {
		m.arena.discard(exactPool, exact)
	}
}

// Chills reports whether Chill can release anything.
func (m *Matrix) Chills() bool {
	for _, c := range *m.chunks.Load() {
		if c.exact.Load() != nil && c.chills() {
			return true
		}
	}
	return false
}

// chills reports whether the chunk may become cold.
func (c *chunk) chills() bool { return !c.flat && c.oddRows() <= oddMost }

// Cold returns the number of templates whose exact rows are not in memory.
func (m *Matrix) Cold() (n int) {
	for _, c := range *m.chunks.Load() {
		if c.exact.Load() == nil {
			n += min(c.slots, m.slots-c.first) - c.free
		}
	}
	return n
}

func (c *chunk) oddRows() (n int) {
	for i := range c.irregular {
		n += bits.OnesCount64(c.irregular[i].Load() & c.live[i].Load())
	}
	return n
}

// Thaw makes the newest cold chunk warm: it fetches the exact rows and stores them in the writer's
// turn, which takes no longer than a look at each owner and code. turn calls write while no other
// writer runs. Thaw returns the number of bytes that it took, or 0 if no chunk is cold. Errors wrap
// ErrMemory, ErrSource or the error of the source.
func (m *Matrix) Thaw(ctx context.Context, turn func(write func())) (taken int64, err error) {
	chunks := *m.chunks.Load()
	index := len(chunks) - 1
	for index >= 0 && chunks[index].exact.Load() != nil {
		index--
	}
	if index < 0 {
		return 0, nil
	}
	c := chunks[index]
	t := thaw{matrix: m, chunk: c, index: index, owners: make([]uint32, c.slots), codes: make([]byte, c.rowBytes(&m.shape))}
	if t.exact, err = m.arena.alloc(exactPool, c.exactBytes(&m.shape)); err != nil {
		return 0, err
	}
	defer t.clear()
	for try := 0; !t.stored && !t.gone; try++ {
		if try == thawTries {
			return 0, fmt.Errorf("%w: the source lacks rows of a chunk, or they change too often", ErrSource)
		}
		if err := t.fetch(ctx); err != nil {
			return 0, fmt.Errorf("fetch the exact rows of a chunk: %w", err)
		}
		if turn(t.write); t.wrong {
			return 0, fmt.Errorf("%w: got the template of another row", ErrSource)
		}
	}
	if t.gone {
		return 0, nil
	}
	return int64(len(t.exact)), nil
}

// thaw is the state of a Thaw.
type thaw struct {
	matrix   *Matrix
	chunk    *chunk
	index    int      // of the chunk
	exact    []byte   // of rows
	codes    []byte   // of the rows in exact
	owners   []uint32 // of the rows in exact, 0 for the others
	prepared Prepared

	stored bool
	gone   bool // the matrix was freed, or another has stored the rows
	wrong  bool // a row has another code
}

// clear zeroes what was fetched, and releases the rows unless the chunk has them.
func (t *thaw) clear() {
	t.prepared.Clear()
	clear(t.codes)
	if !t.stored {
		t.matrix.arena.discard(exactPool, t.exact)
	}
}

// fetch fetches the rows whose owners aren't those of the rows in exact.
func (t *thaw) fetch(ctx context.Context) error {
	var slots []int
	var owners []uint32
	for at := range t.chunk.owners {
		if o := t.chunk.owners[at].Load(); o != 0 && o != t.owners[at] {
			slots, owners = append(slots, at), append(owners, o)
		}
		if len(owners) == waveMost || at == len(t.owners)-1 && len(owners) > 0 {
			if err := t.fetchSome(ctx, slots, owners); err != nil {
				return err
			}
			slots, owners = slots[:0], owners[:0]
		}
	}
	return nil
}

func (t *thaw) fetchSome(ctx context.Context, slots []int, owners []uint32) error {
	s, all := &t.matrix.shape, floats(t.exact)
	row := func(i int) []float32 { return all[slots[i]*s.vecNums:][:s.dim] }
	got := make([]bool, len(owners))
	var wrong atomic.Bool
	err := t.matrix.source.Fetch(ctx, owners, func(i int, template []float32) {
		got[i] = len(template) == s.dim
		copy(row(i), template)
		if !got[i] {
			wrong.Store(true)
		}
	})
	switch {
	case err != nil:
		return err
	case wrong.Load():
		return fmt.Errorf("%w: got a template that has not %d numbers", ErrSource, s.dim)
	}
	for i, at := range slots {
		if t.owners[at] = 0; !got[i] {
			clear(row(i))
			continue
		}
		if err := t.matrix.Prepare(&t.prepared, row(i)); err != nil {
			return fmt.Errorf("%w: %w", ErrSource, err)
		}
		t.owners[at] = owners[i]
		halve(t.codes[at*s.rowBytes:][:s.rowBytes], t.prepared.enc.row)
	}
	return nil
}

// write stores the rows if their owners are still the same.
func (t *thaw) write() {
	chunks, s := *t.matrix.chunks.Load(), &t.matrix.shape
	if t.index >= len(chunks) || chunks[t.index] != t.chunk || t.chunk.exact.Load() != nil {
		t.gone = true
		return
	}
	for at, had := range t.owners {
		switch o := t.chunk.owners[at].Load(); {
		case o != had && o != 0:
			return // Add has used the slot meanwhile
		case o != had:
			clear(t.exact[at*4*s.vecNums:][:4*s.vecNums])
			t.owners[at] = 0
		case o != 0 && !bytes.Equal(t.codes[at*s.rowBytes:][:s.rowBytes], t.chunk.rows[at*s.rowBytes:][:s.rowBytes]):
			t.wrong = true
			return
		}
	}
	exact := t.exact // the rest of t need not stay in memory
	t.chunk.exact.Store(&exact)
	t.stored = true
}
