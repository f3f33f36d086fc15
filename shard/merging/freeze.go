package merging

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"facet/internal/codec"
	"facet/internal/id"
)

// The records of a book in a snapshot; the codes 13 to 15 belong to this package. A book that has seen
// no merge has none.
var (
	headCopied = codec.Head{Code: 13, Version: 1}
	headMerge  = codec.Head{Code: 14, Version: 1}
	headMark   = codec.Head{Code: 15, Version: 1}
)

// copied is a record of Copied.
type copied struct {
	Shard id.Shard `cbor:"1,keyasint"`
	Index uint64   `cbor:"2,keyasint"`
}

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("merging: the snapshot is not consistent")

// View is a book's state at one moment, for a snapshot.
type View struct {
	merges []Merge
	marks  []mark
	copied []copied
}

// Freeze captures the state.
func (b *Book) Freeze() *View {
	b.mu.RLock()
	defer b.mu.RUnlock()
	marks := slices.SortedFunc(maps.Values(b.state.marks), compareMarks)
	v := &View{merges: b.state.list(), marks: marks}
	for _, s := range slices.Sorted(maps.Keys(b.state.copied)) {
		v.copied = append(v.copied, copied{s, b.state.copied[s]})
	}
	return v
}

func compareMarks(a, b mark) int {
	return cmp.Or(compare(a.Target, b.Target), compare(a.Source, b.Source))
}

// Write adds the records of v to w, in an order that depends on the state only.
func (v *View) Write(w *codec.Writer) {
	for _, m := range v.merges {
		w.Record(headMerge, m)
	}
	for _, m := range v.marks {
		w.Record(headMark, m)
	}
	for _, c := range v.copied {
		w.Record(headCopied, c)
	}
}

// Loader builds a state from the records of a snapshot.
type Loader struct {
	state *state
	merge Merge // the last ones
	mark  mark
	shard id.Shard
}

// NewLoader returns an empty loader.
func NewLoader() *Loader { return &Loader{state: newState()} }

// Load reads the next record; mine is false if the record belongs to another package. The error
// wraps codec.ErrMalformed or ErrSnapshot.
func (l *Loader) Load(m codec.Message) (mine bool, err error) {
	switch m.Code {
	case headMerge.Code:
		return true, codec.Take(m, headMerge, l.addMerge)
	case headMark.Code:
		return true, codec.Take(m, headMark, l.addMark)
	case headCopied.Code:
		return true, codec.Take(m, headCopied, l.addCopied)
	default:
		return false, nil
	}
}

func (l *Loader) addMerge(m Merge) error {
	if len(l.state.marks)+len(l.state.copied) > 0 || len(l.state.merges) == Max || compare(m.Source, l.merge.Source) <= 0 || m.Source == m.Target {
		return fmt.Errorf("%w: the merge of subject %s is out of place", ErrSnapshot, m.Source)
	}
	l.state.merges[m.Source], l.merge = m, m
	return nil
}

func (l *Loader) addMark(m mark) error {
	if len(l.state.copied) > 0 || len(l.state.marks) == Max || compareMarks(m, l.mark) <= 0 {
		return fmt.Errorf("%w: the mark of subject %s is out of place", ErrSnapshot, m.Target)
	}
	l.state.marks[pair{m.Target, m.Source}], l.mark = m, m
	return nil
}

func (l *Loader) addCopied(c copied) error {
	if len(l.state.copied) > 0 && c.Shard <= l.shard || c.Index == 0 {
		return fmt.Errorf("%w: the index of copies in shard %d is out of place", ErrSnapshot, c.Shard)
	}
	l.state.copied[c.Shard], l.shard = c.Index, c.Shard
	return nil
}

// Replace replaces the book's state by that of a loader, which is used up.
func (b *Book) Replace(l *Loader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, l.state = l.state, nil
}
