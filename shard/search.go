package shard

import (
	"fmt"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/scan"
	"facet/shard/seal"
)

// openBatch is the number of templates that are opened (about 1 µs each) without
// giving writes a chance.
const openBatch = 4096

// Query asks for the events that are most similar to a probe.
type Query = scan.Query

// Hit is an event that a search found.
type Hit = scan.Hit

// Search gives the best q.Limit events (or subjects) of a gallery's slice in the
// order of scan.Compare: exact, over every write before it. No slice is no hit. It
// fails as a whole if one template can't be opened with key; other errors wrap
// ErrGeneration or ErrQuery.
func (s *Shard) Search(g id.Gallery, generation uint32, key *seal.Key, q Query) ([]Hit, error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: limit %d", ErrQuery, q.Limit)
	}
	for {
		hits, done, err := s.searchOpen(g, generation, key, q)
		if err != nil {
			return nil, fmt.Errorf("search gallery %s: %w", g, err)
		}
		if done {
			return hits, nil
		}
	}
}

// searchOpen searches, or opens some templates and is not done if too many are not
// open yet: the lock is not held, and no write waits, over the opening of a whole
// slice.
func (s *Shard) searchOpen(g id.Gallery, generation uint32, key *seal.Key, q Query) (hits []Hit, done bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil || len(sl.subjects) == 0 {
		return nil, true, err
	}
	if done, err = sl.open(key, openBatch); err != nil || !done {
		return nil, false, err
	}
	if len(q.Probe) != sl.templates.dim {
		return nil, false, fmt.Errorf("%w: a probe of %d numbers among templates of %d", ErrQuery, len(q.Probe), sl.templates.dim)
	}
	return scan.TopK(sl.templates.all(), s.table, q), true, nil
}

// Best gives the highest score of the probe with the active events of a subject;
// ok is false if the subject has none. Errors are as of Search.
func (s *Shard) Best(g id.Gallery, key *seal.Key, subject id.Subject, probe engine.Template) (best int, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil || len(sl.subjects[subject]) == 0 {
		return 0, false, nil
	}
	// The lock is held over few comparisons of one subject; chunks and dim may
	// change without it.
	sl.opening.Lock()
	defer sl.opening.Unlock()
	for _, e := range sl.subjects[subject] {
		if err := sl.openRow(key, e.row); err != nil {
			return 0, false, fmt.Errorf("compare with subject %s: %w", subject, err)
		}
		if len(probe) != sl.templates.dim {
			return 0, false, fmt.Errorf("%w: a probe of %d numbers among templates of %d", ErrQuery, len(probe), sl.templates.dim)
		}
		best = max(best, s.table.Score(score.Dot(probe, sl.templates.at(e.row))))
	}
	return best, true, nil
}

// Sealed gives the sealed face of an active event in one revision, which must not
// be changed; ok is false if there is none.
func (s *Shard) Sealed(g id.Gallery, subject id.Subject, event id.Event, revision uint32) (sealed []byte, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return nil, false
	}
	i := sl.active(subject, event)
	if i < 0 || sl.subjects[subject][i].revision != revision {
		return nil, false
	}
	return sl.subjects[subject][i].sealed, true
}
