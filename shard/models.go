package shard

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"facet/internal/id"
)

// models knows the models of the templates that a slice has had, so that none is
// compared with one of another model. It reads the names that stand beside the
// sealed faces; that they are true shows when a face is opened.
//
// It is written while Shard.mu is held for writing and may be read at any time.
type models struct {
	// first is the first named model, other the first that differs from it; as
	// numbers, of which 0 is none.
	first, other atomic.Uint64
}

// add notes the model of a face that comes into the slice.
func (m *models) add(sealed []byte) {
	name := modelOf(sealed)
	n := binary.BigEndian.Uint64(name[:])
	if n == 0 || m.first.CompareAndSwap(0, n) || m.first.Load() == n {
		return
	}
	m.other.CompareAndSwap(0, n)
}

// checkOne refuses a slice in which there have been templates of two models.
func (m *models) checkOne() error {
	if other := m.other.Load(); other != 0 {
		return id.SameModel(model(m.first.Load()), model(other))
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
	err := sl.models.checkOne()
	if err == nil {
		err = id.SameModel(probe, model(sl.models.first.Load()))
	}
	if err != nil {
		return fmt.Errorf("compare a probe with gallery %s: %w", g, err)
	}
	return nil
}
