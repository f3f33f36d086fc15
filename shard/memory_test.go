package shard

import (
	"testing"

	"facet/engine"
	"facet/internal/must"
	"facet/shard/kernel"
)

// The estimate grows with events and stays the same when they are opened.
func TestMemoryEstimateCoversOpenedEvents(t *testing.T) {
	t.Parallel()
	const n, dim = 3000, 192
	s, key := newTestShard(t, 2*n), testKey(t, 1)
	s.arena = kernel.NewArena(0)
	template := make(engine.Template, dim)
	template[3] = 1
	for i := range n {
		put(t, s, newEvent(key, i, template))
	}
	face := int64(len(newEvent(key, 0, template).Sealed))
	before := s.Memory()
	if least, most := n*(face+4*dim), n*4*(face+4*dim); before < least || before > most {
		t.Errorf("%d bytes for %d events, want %d to %d", before, n, least, most)
	}
	must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
	opened := s.Memory()
	if ratio := float64(opened) / float64(before); ratio < .8 || ratio > 1.25 {
		t.Errorf("%d bytes, then %d when all are open", before, opened)
	}
	if used := s.arena.Used(); used > opened {
		t.Errorf("%d bytes of the arena are used, more than the estimate %d", used, opened)
	}
	held := s.state.slices[testGallery].templates.bytes()
	for i := range n {
		e := newEvent(key, i, template)
		must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, n}))
	}
	faces := heapGrowth * n * face
	if erased := s.Memory(); erased > opened-faces-held/freeShare+held/100 {
		t.Errorf("%d bytes when all are erased, %d before: their faces were %d of it, and a part of %d is room", erased, opened, faces, held)
	}
	s.Fence(testGallery, 2)
	if _, err := s.Purge(testGallery, 2, 2*n); err != nil {
		t.Fatal(err)
	}
	if left := s.Memory(); left != 0 || s.arena.Used() != 0 {
		t.Errorf("%d bytes are left of a gallery that is gone, %d of the arena", left, s.arena.Used())
	}
}
