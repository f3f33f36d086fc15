package merging

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"facet/internal/codec"
)

// The records of a book in a snapshot; the codes 14 and 15 belong to this package. A book without
// merges and marks has none.
var (
	headMerge = codec.Head{Code: 14, Version: 1}
	headMark  = codec.Head{Code: 15, Version: 1}
)

// ErrSnapshot is returned when records contradict each other.
var ErrSnapshot = errors.New("merging: the snapshot is not consistent")

// View is a book's state at one moment, for a snapshot.
type View struct {
	merges []Merge
	marks  []mark
}

// Freeze captures the state.
func (b *Book) Freeze() *View {
	b.mu.RLock()
	defer b.mu.RUnlock()
	marks := slices.SortedFunc(maps.Values(b.state.marks), compareMarks)
	return &View{b.state.list(), marks}
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
}

// Loader builds a state from the records of a snapshot.
type Loader struct {
	state *state
	merge Merge // the last ones
	mark  mark
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
	default:
		return false, nil
	}
}

func (l *Loader) addMerge(m Merge) error {
	if len(l.state.marks) > 0 || len(l.state.merges) == Max || compare(m.Source, l.merge.Source) <= 0 || m.Source == m.Target {
		return fmt.Errorf("%w: the merge of subject %s is out of place", ErrSnapshot, m.Source)
	}
	l.state.merges[m.Source], l.merge = m, m
	return nil
}

func (l *Loader) addMark(m mark) error {
	if len(l.state.marks) == Max || compareMarks(m, l.mark) <= 0 {
		return fmt.Errorf("%w: the mark of subject %s is out of place", ErrSnapshot, m.Target)
	}
	l.state.marks[pair{m.Target, m.Source}], l.mark = m, m
	return nil
}

// Replace replaces the book's state by that of a loader, which is used up.
func (b *Book) Replace(l *Loader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, l.state = l.state, nil
}
