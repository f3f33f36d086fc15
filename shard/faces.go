package shard

import (
	"sync"

	"github.com/tidwall/btree"
)

// faces are the sealed faces in memory, each followed by its note, by the sequences of their entries.
// An entry whose face is in a segment has none.
type faces struct {
	mu sync.RWMutex
	of *btree.Map[uint64, []byte]
}

func newFaces() *faces { return &faces{of: new(btree.Map[uint64, []byte])} }

func (f *faces) add(sequence uint64, sealed []byte) {
	if sealed == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of.Load(sequence, sealed) // fast, because it is the last
}

func (f *faces) remove(sequences ...uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sequence := range sequences {
		f.of.Delete(sequence)
	}
}

// get returns a sealed face, or nil. It must not be changed.
func (f *faces) get(sequence uint64) []byte {
	f.mu.RLock()
	defer f.mu.RUnlock()
	sealed, _ := f.of.Get(sequence)
	return sealed
}

// copied returns the faces as they are now.
func (f *faces) copied() *btree.Map[uint64, []byte] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of.Copy()
}
