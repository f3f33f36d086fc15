package shard

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"facet/internal/id"
)

// models notes the models of the templates that a slice has had, so that templates of two models
// are never compared. It reads the names beside the sealed faces. Opening a face proves its name.
//
// It is written with Shard.mu held for writing and may be read at any time.
type models struct {
	// first is the first model that a face named. other is the first model that differs from it. 0
	// means none.
	first, other atomic.Uint64
}

func (m *models) add(sealed []byte) {
	name := modelOf(sealed)
	n := binary.BigEndian.Uint64(name[:])
	if n == 0 || m.first.CompareAndSwap(0, n) || m.first.Load() == n {
		return
	}
	m.other.CompareAndSwap(0, n)
}

// checkOne returns an error if the slice has had templates of two models.
func (m *models) checkOne() error {
	if other := m.other.Load(); other != 0 {
		return id.SameModel(model(m.first.Load()), model(other))
	}
	return nil
}

// only returns the model of all templates, or an error if the slice has had templates of two.
func (m *models) only() (id.Model, error) { return model(m.first.Load()), m.checkOne() }

func model(n uint64) (m id.Model) {
	binary.BigEndian.PutUint64(m[:], n)
	return m
}

// CheckModel returns an error that wraps id.ModelError if a template of the gallery's slice is of
// another model than the probe. A call after a search covers all templates that the search
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
