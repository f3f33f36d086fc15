package operation

import (
	"fmt"

	"facet/internal/codec"
	"facet/shard/segment"
)

// Loader builds a memory from the records of a snapshot.
type Loader struct {
	memory       *Memory
	store        *segment.Store // nil: the snapshot must not have files
	begun        bool
	plain, keyed storedQueue
}

// NewLoader returns a loader of a memory with these limits.
func NewLoader(limits Limits) *Loader { return &Loader{memory: New(limits)} }

// Keep sets the store of the files. Call it before any other method. Without a store the
// snapshot must not have files.
func (l *Loader) Keep(store *segment.Store) { l.store = store }

// Load takes the next record. mine is false if the record belongs to another package. The
// error is one of the disk, or wraps codec.ErrMalformed, segment.ErrCorrupt,
// segment.ErrMissing or ErrSnapshot.
func (l *Loader) Load(r codec.Message) (mine bool, err error) {
	switch r.Code {
	case headClock.Code:
		return true, codec.Take(r, headClock, l.clock)
	case headOutcome.Code:
		return true, codec.Take(r, headOutcome, l.outcome)
	case headStored.Code:
		return true, codec.Take(r, headStored, l.stored)
	case headFile.Code:
		return true, codec.Take(r, headFile, l.file)
	default:
		return false, nil
	}
}

func (l *Loader) clock(c clockRecord) error {
	return l.begin(c.Clock, storedQueue{Outcomes: c.Plain}, storedQueue{Outcomes: c.Keyed})
}

func (l *Loader) stored(c storedRecord) error {
	for _, q := range []storedQueue{c.Plain, c.Keyed} {
		if (q.Outcomes == 0) != (q.First == 0) || (q.Outcomes == 0) != (q.Files == 0) {
			return fmt.Errorf("%w: %d operations from %d on in %d files", ErrSnapshot, q.Outcomes, q.First, q.Files)
		}
	}
	return l.begin(c.Clock, c.Plain, c.Keyed)
}

func (l *Loader) begin(clock int64, plain, keyed storedQueue) error {
	if l.begun || clock < 0 {
		return fmt.Errorf("%w: a second clock, or one before 1970", ErrSnapshot)
	}
	l.begun, l.plain, l.keyed, l.memory.clock = true, plain, keyed, clock
	return nil
}

func (l *Loader) outcome(o Outcome) error {
	if !l.begun || l.plain.Files+l.keyed.Files > 0 {
		return fmt.Errorf("%w: operation %x is out of place", ErrSnapshot, o.Name.Op)
	}
	return l.insert(&o)
}

// insert adds an outcome to the end of its queue.
func (l *Loader) insert(o *Outcome) error {
	_, last, ok := l.memory.queueOf(o.Name).Max()
	switch {
	case o.Time < 0 || o.Time > l.memory.clock || ok && o.Time < last.Time:
		return fmt.Errorf("%w: operation %x is out of place", ErrSnapshot, o.Name.Op)
	case l.memory.byOp[o.Name.Op] != nil:
		return fmt.Errorf("%w: operation %x is there twice", ErrSnapshot, o.Name.Op)
	}
	l.memory.insert(o)
	return nil
}

// file loads the outcomes of a file.
func (l *Loader) file(r fileRecord) error {
	q, of := l.memory.plain, l.plain
	if uint64(len(q.files)) == of.Files {
		q, of = l.memory.keyed, l.keyed
	}
	if !l.begun || uint64(len(q.files)) == of.Files || l.store == nil {
		return fmt.Errorf("%w: file %s of operations is out of place", ErrSnapshot, r.Hash)
	}
	f, err := l.store.File(r.Hash)
	if err != nil {
		return err
	}
	defer f.Release()
	if len(q.files) == 0 {
		q.last = of.First - 1
	}
	err = f.Clear(func(number uint64, b []byte, _ int) error {
		if number < of.First {
			return nil // forgotten
		}
		if number != q.last+1 {
			return fmt.Errorf("%w: operation %d comes after %d", ErrSnapshot, number, q.last)
		}
		var o Outcome
		if err := codec.Decode(b, headOutcome, &o); err != nil {
			return err
		}
		if l.memory.queueOf(o.Name) != q {
			return fmt.Errorf("%w: operation %x is among those of the other kind", ErrSnapshot, o.Name.Op)
		}
		return l.insert(&o)
	})
	if err != nil {
		return fmt.Errorf("operations of file %s: %w", r.Hash, err)
	}
	q.files = append(q.files, f.Batch())
	return nil
}

// Memory returns the loaded memory. The error wraps ErrSnapshot if records are missing.
func (l *Loader) Memory() (*Memory, error) {
	m := l.memory
	if !l.begun || !m.plain.has(l.plain) || !m.keyed.has(l.keyed) {
		return nil, fmt.Errorf("%w: records are missing", ErrSnapshot)
	}
	return m, nil
}

// has reports whether a queue has the promised outcomes and files.
func (q *queue) has(promised storedQueue) bool {
	return uint64(q.Len()) == promised.Outcomes && uint64(len(q.files)) == promised.Files
}
