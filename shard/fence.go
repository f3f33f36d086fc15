package shard

import (
	"github.com/tidwall/btree"

	"facet/internal/id"
)

// fencesMax bounds the fences that are kept: beyond it the oldest goes, whose
// gallery was deleted that many galleries ago. Apply decides by it, so another
// number needs a new version of the commands.
const fencesMax = 1 << 16

// fence keeps commands of older generations of a gallery out, for good: they may
// come long after the gallery is gone.
type fence struct {
	gallery    id.Gallery
	generation uint32 // the first that is let in
	sequence   uint64
	// remains are the entries that it cut off and that are not purged yet.
	remains *btree.Map[uint64, *entry]
}

// fences are the fences of all galleries.
type fences struct {
	of map[id.Gallery]*fence
	// order has them by sequence.
	order *btree.Map[uint64, *fence]
	// tombstones take the sequences of entries that are dropped.
	tombstones *tombstones
}

func newFences(t *tombstones) fences {
	return fences{of: make(map[id.Gallery]*fence), order: new(btree.Map[uint64, *fence]), tombstones: t}
}

// add puts a fence in the place of an earlier one of its gallery.
func (fs *fences) add(f *fence) {
	if old := fs.of[f.gallery]; old != nil {
		fs.order.Delete(old.sequence)
		fs.tombstones.addAll(old.remains)
	}
	fs.of[f.gallery] = f
	fs.order.Set(f.sequence, f)
	if fs.order.Len() > fencesMax {
		_, oldest, _ := fs.order.PopMin()
		fs.tombstones.addAll(oldest.remains)
		delete(fs.of, oldest.gallery)
	}
}

// Fence shuts out all generations of a gallery before generation: from now on they
// are ErrGeneration to every write and read. The slice's templates are zeroed, its
// entries wait to be purged; left counts them. What an earlier fence of the gallery
// had left is dropped at once. A fence of a later generation stays as it is.
func (s *Shard) Fence(g id.Gallery, generation uint32) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.state.fences.of[g]; old != nil && old.generation >= generation {
		return old.remains.Len()
	}
	f := &fence{g, generation, s.state.next(), new(btree.Map[uint64, *entry])}
	if sl := s.state.slices[g]; sl != nil && sl.generation < generation {
		f.remains = sl.entries
		s.state.discard(sl)
	}
	s.state.fences.add(f)
	return f.remains.Len()
}

// discard takes a slice away and zeroes its templates.
func (st *state) discard(sl *slice) {
	for _, c := range sl.pending { // the order is of no effect
		st.pending.Delete(c.sequence)
	}
	sl.templates.drop()
	delete(st.slices, sl.gallery)
}

// Purge drops at most n of the entries behind a gallery's fence, the oldest first,
// and counts what is left. The error wraps ErrFence if there is no fence of at least
// generation.
func (s *Shard) Purge(g id.Gallery, generation uint32, n int) (left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.state.fences.of[g]
	if f == nil || f.generation < generation {
		return 0, ErrFence
	}
	for ; n > 0 && f.remains.Len() > 0; n-- {
		sequence, _, _ := f.remains.PopMin()
		s.state.tombstones.add(sequence)
	}
	return f.remains.Len(), nil
}
