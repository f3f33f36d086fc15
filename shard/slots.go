package shard

import "facet/internal/id"

// Grant raises the total of a slice's granted slots to g.Total, if it was smaller. The first grant
// makes the slice. The error wraps ErrGeneration.
func (s *lockedState) Grant(g Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.open(g.Gallery, g.Generation)
	if err == nil {
		sl.granted = max(sl.granted, g.Total)
	}
	return err
}

// Widen records that the gallery lies on more shards since epoch. CheckEpoch then refuses reads of
// an older epoch. The error wraps ErrGeneration.
func (s *lockedState) Widen(g id.Gallery, generation, epoch uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.open(g, generation)
	if err == nil {
		sl.epoch = max(sl.epoch, epoch)
	}
	return err
}

// Epoch returns the latest epoch that Widen was given for a gallery, or 0.
func (s *lockedState) Epoch(g id.Gallery) uint32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if sl := s.state.slices[g]; sl != nil {
		return sl.epoch
	}
	return 0
}

// open returns the slice of a gallery and makes it if there is none.
func (st *state) open(g id.Gallery, generation uint32) (*slice, error) {
	sl, err := st.slice(g, generation)
	if err == nil && sl == nil {
		sl = newSlice(g, generation, st)
		st.slices[g] = sl
	}
	return sl, err
}

// Return asks a slice to return slots.
type Return struct {
	Gallery    id.Gallery
	Generation uint32
	// Granted is the total of granted slots that the caller knows. Return first raises the slice's
	// total to it, as Grant does.
	Granted uint32
	// Returned is the total of returned slots that the caller knows. If the slice has another
	// total, Return returns no slots.
	Returned uint32
	// Keep is how many free slots stay.
	Keep uint32
	// Least is how many slots are wanted in any case. Return takes free slots in spite of Keep, and
	// then drops the oldest deleted entries for theirs.
	Least uint32
}

// Return returns free slots for good and reports the usage after it. All counts are zero without a
// slice. The error wraps ErrGeneration.
func (s *lockedState) Return(r Return) (Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl, err := s.state.slice(r.Gallery, r.Generation)
	if err == nil && sl == nil && r.Granted > 0 {
		sl, err = s.state.open(r.Gallery, r.Generation)
	}
	if err != nil || sl == nil {
		return Usage{}, err
	}
	sl.granted = max(sl.granted, r.Granted)
	if sl.returned == r.Returned {
		free := sl.slots() - sl.used()
		back := max(free-min(free, r.Keep), min(free, r.Least))
		for back < r.Least && sl.dropOldestDeleted() {
			back++
		}
		sl.returned += back
	}
	return sl.usage(), nil
}
