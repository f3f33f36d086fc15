package shard

import (
	"github.com/tidwall/btree"

	"facet/internal/id"
	"facet/shard/record"
)

// fencesMax is the most fences that are kept. One more drops the oldest fence. Apply depends on
// this number, so another number needs a new version of the commands.
const fencesMax = 1 << 16

// fence refuses commands of older generations of a gallery, for good: such a command may come long
// after the gallery is gone.
type fence struct {
	gallery    id.Gallery
	generation uint32 // the first that it admits
	sequence   uint64
	// remains are the entries that the fence cut off and that are not purged yet, or nil.
	remains *record.Order
}

// free frees the memory of the entries that remain.
func (f *fence) free() {
	if f.remains != nil {
		f.remains.Table().Close()
		f.remains = nil
	}
}

// fences are the fences of all galleries.
type fences struct {
	of map[id.Gallery]*fence
	// order has the fences by sequence.
	order *btree.Map[uint64, *fence]
	// tombstones receives the sequences of dropped entries, and faces loses their faces.
	tombstones *tombstones
	faces      *faces
}

func newFences(t *tombstones, f *faces) fences {
	return fences{of: make(map[id.Gallery]*fence), order: new(btree.Map[uint64, *fence]), tombstones: t, faces: f}
}

// add adds a fence. It replaces an earlier fence of the same gallery.
func (fs *fences) add(f *fence) {
	if old := fs.of[f.gallery]; old != nil {
		fs.order.Delete(old.sequence)
		fs.drop(old)
	}
	fs.of[f.gallery] = f
	fs.order.Set(f.sequence, f)
	if fs.order.Len() > fencesMax {
		_, oldest, _ := fs.order.PopMin()
		fs.drop(oldest)
		delete(fs.of, oldest.gallery)
	}
}

// drop drops all entries that remain behind a fence, at once.
func (fs *fences) drop(f *fence) {
	for _, e := range f.remains.All(0) {
		fs.tombstones.add(e.Sequence())
		fs.faces.remove(e.Sequence())
	}
	f.free()
}

// purge drops the oldest n entries that remain behind a fence.
func (fs *fences) purge(f *fence, n int) {
	for ; n > 0 && f.remains.Len() > 0; n-- {
		sequence := f.remains.First().Sequence()
		f.remains.Table().Remove(f.remains.Delete(sequence))
		fs.tombstones.add(sequence)
		fs.faces.remove(sequence)
	}
	if f.remains.Len() == 0 {
		f.free()
	}
}

// Fence shuts out all generations of a gallery before generation: every write and read of them
// fails with ErrGeneration from now on. It zeroes the slice's templates and leaves its entries to
// Purge. left is the number of these entries. Fence drops the entries that an earlier fence of the
// gallery had left. It changes nothing if there is a fence of this or a later generation.
func (s *lockedState) Fence(g id.Gallery, generation uint32) (left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.state.fences.of[g]; old != nil && old.generation >= generation {
		return old.remains.Len()
	}
	f := &fence{g, generation, s.state.next(), nil}
	if sl := s.state.slices[g]; sl != nil && sl.generation < generation {
		f.remains = sl.entries
		s.state.discard(sl)
	}
	s.state.fences.add(f)
	return f.remains.Len()
}

func (st *state) discard(sl *slice) {
	for _, c := range sl.pending { // any order will do
		st.pending.Delete(c.sequence)
	}
	sl.drop()
	delete(st.slices, sl.gallery)
}

// Purge drops the oldest n entries behind a gallery's fence and counts those left. The error wraps
// ErrFence if there is no fence of generation or later.
func (s *lockedState) Purge(g id.Gallery, generation uint32, n int) (left int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.state.fences.of[g]
	if f == nil || f.generation < generation {
		return 0, ErrFence
	}
	s.state.fences.purge(f, n)
	return f.remains.Len(), nil
}
