package claim

import (
	"maps"
	"slices"
	"sync"

	"facet/internal/id"
	"facet/shard"
)

// barsMax is the most bars that a book keeps. A write whose claim is older than all of them is
// refused, and claims again. Apply depends on this number, so another number needs a new version of
// the commands.
const barsMax = 4096

// Claim is a name and its holder.
type Claim struct {
	Name   shard.ExternalName
	Holder Holder
}

// Change changes the claim to a name. Subject claims it, unless another subject than From holds it
// then. The zero Subject gives it up for From.
type Change struct {
	Name    shard.ExternalName `cbor:"1,keyasint"`
	Subject id.Subject         `cbor:"2,keyasint,omitzero"`
	// From is a holder, at the turn that was read, from whom the claim is taken.
	From Holder `cbor:"3,keyasint,omitzero"`
}

// Book has the claims to names whose home this shard is, and the bars of this shard's subjects.
type Book struct {
	mu    sync.RWMutex // guards state
	state *state
}

// state is what a snapshot holds.
type state struct {
	tables map[id.Gallery]*table
	// bars are the subjects of the last bars, the oldest first. count counts all bars ever.
	bars  []id.Subject
	count uint64
	// turns counts all claims ever.
	turns uint64
}

// New returns an empty book.
func New() *Book { return &Book{state: newState()} }

func newState() *state { return &state{tables: map[id.Gallery]*table{}} }

// Change makes the changes in their order and returns the holders of the names after them. The
// claims of an earlier generation go. ok is false, and nothing changes, if there are claims of a
// later one.
func (b *Book) Change(g id.Gallery, generation uint32, changes []Change) (out []Holder, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.state.tables[g]
	if t != nil && t.generation > generation {
		return nil, false
	}
	if t == nil || t.generation < generation {
		t = &table{generation: generation}
	}
	out = make([]Holder, len(changes))
	for i, c := range changes {
		out[i] = t.holder(c.Name)
		if free := out[i].Subject.IsZero(); !free && out[i].Subject != c.Subject && out[i] != c.From {
			continue
		}
		out[i] = Holder{}
		if !c.Subject.IsZero() {
			b.state.turns++
			out[i] = Holder{c.Subject, uint16(b.state.turns)}
		}
		t.set(c.Name, out[i])
	}
	if t.n > 0 {
		b.state.tables[g] = t
	} else {
		delete(b.state.tables, g)
	}
	return out, true
}

// Holder returns the holder of a name, or the zero Holder.
func (b *Book) Holder(g id.Gallery, generation uint32, name shard.ExternalName) Holder {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if t := b.state.tables[g]; t != nil && t.generation == generation {
		return t.holder(name)
	}
	return Holder{}
}

// Fence removes the claims of the gallery's generations before generation.
func (b *Book) Fence(g id.Gallery, generation uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.state.tables[g]; t != nil && t.generation < generation {
		delete(b.state.tables, g)
	}
}

// Bar bars the claims of a subject that are older than this call (Barred).
func (b *Book) Bar(subject id.Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	s.count++
	s.bars = append(s.bars, subject)
	if len(s.bars) > barsMax {
		s.bars = slices.Clone(s.bars[1:])
	}
}

// Bars counts all bars. A writer reads the count before it claims a name, and its write brings the
// count with it.
func (b *Book) Bars() uint64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.count
}

// Barred reports whether a claim of a subject is out of date: after the count that its writer read,
// the subject was barred, or so many subjects were that the book no longer knows.
func (b *Book) Barred(subject id.Subject, read uint64) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	s := b.state
	if read >= s.count {
		return read > s.count
	}
	since := s.count - read
	return since > uint64(len(s.bars)) || slices.Contains(s.bars[uint64(len(s.bars))-since:], subject)
}

// Galleries returns the galleries with claims, with their generations.
func (b *Book) Galleries() map[id.Gallery]uint32 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := make(map[id.Gallery]uint32, len(b.state.tables))
	for g, t := range maps.All(b.state.tables) {
		out[g] = t.generation
	}
	return out
}

// After returns at most n claims of a gallery in the order of their names, from the one after name
// on.
func (b *Book) After(g id.Gallery, name shard.ExternalName, n int) []Claim {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if t := b.state.tables[g]; t != nil {
		return t.after(name, n)
	}
	return nil
}

// Len counts the claims.
func (b *Book) Len() (n int) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, t := range b.state.tables {
		n += t.n
	}
	return n
}
