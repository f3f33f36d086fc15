package merging

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"

	"facet/internal/id"
)

// Max is the most merges, and the most marks of targets, that a book keeps. Apply depends on this
// number, so another number needs a new version of the commands.
const Max = 1024

var (
	// ErrBusy is returned when the subject takes part in another merge.
	ErrBusy = errors.New("merging: the subject takes part in another merge")
	// ErrFull is returned when the book has Max merges or marks.
	ErrFull = errors.New("merging: too many merges are under way")
)

// Refusal is why a merge was given up.
type Refusal uint8

// The refusals. The numbers are stored.
const (
	NoTarget   Refusal = 1 // the target does not exist
	NoSlot     Refusal = 2 // the gallery has no slot for a copy
	TargetBusy Refusal = 3 // the target takes part in another merge
)

// Merge is a merge that is under way or has ended lately.
type Merge struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Source     id.Subject `cbor:"3,keyasint"`
	Target     id.Subject `cbor:"4,keyasint"`
	// Op, Request and Keyed name the client's write.
	Op      id.Operation `cbor:"5,keyasint"`
	Request [16]byte     `cbor:"6,keyasint"`
	Keyed   bool         `cbor:"7,keyasint,omitempty"`
	// Tenant is against whose quota the operation counts, or zero.
	Tenant id.Tenant `cbor:"8,keyasint,omitzero"`
	// Ended is when the merge ended, in milliseconds since 1970, or 0. The merge is kept for the
	// searches that were under way when its source was removed, and for the client that waits.
	Ended int64 `cbor:"9,keyasint,omitempty"`
	// Number differs for all merges of the shard.
	Number uint64 `cbor:"10,keyasint"`
	// Refused says why the merge is given up. 0 means that it is not. Until Ended is set, copies
	// are being removed.
	Refused Refusal `cbor:"11,keyasint,omitempty"`
}

// mark says that a target receives copies from a source.
type mark struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Target     id.Subject `cbor:"3,keyasint"`
	Source     id.Subject `cbor:"4,keyasint"`
}

// pair names a mark.
type pair struct{ target, source id.Subject }

// Book has the merges of a shard's subjects.
type Book struct {
	mu    sync.RWMutex // guards state
	state *state
}

type state struct {
	merges map[id.Subject]Merge // by source
	marks  map[pair]mark
	copied map[id.Shard]uint64 // by the target's shard (Copied)
}

// New returns an empty book.
func New() *Book { return &Book{state: newState()} }

func newState() *state { return &state{map[id.Subject]Merge{}, map[pair]mark{}, map[id.Shard]uint64{}} }

// Begin begins a merge, or continues the one of the same source and target. One that was given up
// begins anew. The error is ErrBusy or ErrFull.
func (b *Book) Begin(m Merge) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	old, known := b.state.merges[m.Source]
	switch {
	case known && old.Ended == 0 && old.Target == m.Target:
		return nil
	case known && (old.Ended == 0 || old.Refused == 0) || b.state.receives(m.Source):
		return ErrBusy
	case !known && len(b.state.merges) >= Max:
		return ErrFull
	}
	b.state.merges[m.Source] = m
	return nil
}

// Of returns the merge of a source.
func (b *Book) Of(source id.Subject) (Merge, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	m, ok := b.state.merges[source]
	return m, ok
}

// List returns all merges, in the order of their sources.
func (b *Book) List() []Merge {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.list()
}

// Removals says which sources of a gallery were removed last. It changes with each removal. The
// zero value is none of those that the book keeps.
type Removals struct {
	Time  int64 `cbor:"1,keyasint,omitempty"` // in milliseconds since 1970
	Count int   `cbor:"2,keyasint,omitempty"` // of the sources that were removed then
}

// Removals returns which sources of the gallery were removed last.
func (b *Book) Removals(g id.Gallery) (r Removals) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, m := range b.state.merges {
		switch {
		case m.Gallery != g || m.Ended == 0 || m.Refused != 0 || m.Ended < r.Time:
		case m.Ended > r.Time:
			r = Removals{m.Ended, 1}
		default:
			r.Count++
		}
	}
	return r
}

// End notes when the merge of a source ended, in milliseconds since 1970, and why it was given up,
// if it was.
func (b *Book) End(source id.Subject, time int64, why Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m, ok := b.state.merges[source]; ok {
		m.Ended, m.Refused = time, why
		b.state.merges[source] = m
	}
}

// Removed notes that the copies of a source that was removed lie at or before an index of the log of
// the target's shard.
func (b *Book) Removed(target id.Shard, index uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.copied[target] = max(b.state.copied[target], index)
}

// Copied returns, for each other shard that got copies of sources which were removed, an index of its
// log. It has all these copies at this index. The caller owns the map.
func (b *Book) Copied() map[id.Shard]uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return maps.Clone(b.state.copied)
}

// Refuse notes why the merge of a source is given up. It can't remove its source any more, and ends
// when its copies are removed.
func (b *Book) Refuse(source id.Subject, why Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m, ok := b.state.merges[source]; ok {
		m.Refused = why
		b.state.merges[source] = m
	}
}

// Forget drops the merge of a source.
func (b *Book) Forget(source id.Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.state.merges, source)
}

// Receive marks that target receives copies from source. The error is ErrBusy or ErrFull.
func (b *Book) Receive(g id.Gallery, generation uint32, target, source id.Subject) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := pair{target, source}
	if _, known := b.state.marks[at]; known {
		return nil
	}
	if m, known := b.state.merges[target]; known && m.Ended == 0 {
		return ErrBusy
	}
	if len(b.state.marks) >= Max {
		return ErrFull
	}
	b.state.marks[at] = mark{g, generation, target, source}
	return nil
}

// Stop takes the mark of Receive away.
func (b *Book) Stop(target, source id.Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.state.marks, pair{target, source})
}

// Leaves reports whether a merge of the subject into another is under way.
func (b *Book) Leaves(subject id.Subject) bool {
	m, known := b.Of(subject)
	return known && m.Ended == 0
}

// Receives reports whether a subject receives copies.
func (b *Book) Receives(subject id.Subject) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.receives(subject)
}

// Fence drops the merges and marks of the gallery's generations before generation.
func (b *Book) Fence(g id.Gallery, generation uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.state.merges, func(_ id.Subject, m Merge) bool { return m.Gallery == g && m.Generation < generation })
	maps.DeleteFunc(b.state.marks, func(_ pair, m mark) bool { return m.Gallery == g && m.Generation < generation })
}

func (st *state) receives(subject id.Subject) bool {
	for at := range st.marks {
		if at.target == subject {
			return true
		}
	}
	return false
}

func (st *state) list() []Merge {
	return slices.SortedFunc(maps.Values(st.merges), func(a, b Merge) int { return compare(a.Source, b.Source) })
}

func compare(a, b id.Subject) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }
