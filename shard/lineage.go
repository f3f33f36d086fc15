package shard

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"facet/internal/id"
)

// lineage knows the models of the templates that a slice has had, so that none is
// compared with one of another model. It reads the names that stand beside the
// sealed faces; that they are true shows when a face is opened.
//
// It is written while Shard.mu is held for writing and may be read at any time.
type lineage struct {
	// first is the first named model, other the first that differs from it; as
	// numbers, of which 0 is none.
	first, other atomic.Uint64
}

// join takes note of a face that comes into the slice.
func (l *lineage) join(sealed []byte) {
	m := modelOf(sealed)
	n := binary.BigEndian.Uint64(m[:])
	if n == 0 || l.first.CompareAndSwap(0, n) || l.first.Load() == n {
		return
	}
	l.other.CompareAndSwap(0, n)
}

// pure refuses a slice in which there have been templates of two models.
func (l *lineage) pure() error {
	if other := l.other.Load(); other != 0 {
		return id.SameModel(model(l.first.Load()), model(other))
	}
	return nil
}

func model(n uint64) (m id.Model) {
	binary.BigEndian.PutUint64(m[:], n)
	return m
}

// CheckModel refuses to let a probe of that model be compared with the templates
// of a gallery's slice: the error wraps an id.ModelError if one of them is of
// another model. What is asked after a search tells of all that the search has
// compared.
func (s *Shard) CheckModel(g id.Gallery, probe id.Model) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return nil
	}
	err := sl.lineage.pure()
	if err == nil {
		err = id.SameModel(probe, model(sl.lineage.first.Load()))
	}
	if err != nil {
		return fmt.Errorf("compare a probe with gallery %s: %w", g, err)
	}
	return nil
}
