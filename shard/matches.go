package shard

import (
	"context"
	"fmt"
	"slices"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/scan"
	"facet/shard/seal"
)

// Match is a subject with an event, or with a template of its own, at or above a threshold.
type Match struct {
	Subject id.Subject
	// Events has the best of these events, in the order of scan.Compare. Total counts all of them. If
	// only the subject's template reaches the threshold, Events has its best event, and Total is 0.
	Events []Hit
	Total  int
}

// MatchQuery asks for a page of the subjects that a probe may show.
type MatchQuery struct {
	Probe     engine.Template
	Threshold int
	// After is the last subject of the page before, or zero.
	After id.Subject
	// Limit is the most subjects, and EventsMax the most events of each.
	Limit, EventsMax int
	// Means asks for the subjects' own templates, too.
	Means bool
	// Coverage, unless nil, is filled as in Query. It is that of the search for the page's subjects.
	Coverage *scan.Coverage
}

// Matches returns the first q.Limit subjects after q.After, in the order of ids, that have an event
// at or above the threshold. next continues the run; it is zero when no subject follows. A subject that has such an
// event while all pages of a run are read is on exactly one of them, whatever other writes do. The
// list may be shorter than q.Limit although more follow. Errors are those of Search.
func (s *Shard) Matches(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q MatchQuery) (list []Match, next id.Subject, err error) {
	hits, err := s.Search(ctx, g, generation, key, Query{Probe: q.Probe, Threshold: q.Threshold, Limit: q.Limit, After: &q.After, Means: q.Means, Coverage: q.Coverage})
	if err != nil {
		return nil, next, err
	}
	if len(hits) == q.Limit {
		next = hits[len(hits)-1].Subject
	}
	for _, h := range hits {
		m, err := s.match(g, generation, key, h.Subject, &q)
		if err != nil {
			return nil, next, fmt.Errorf("compare with subject %s: %w", h.Subject, err)
		}
		if len(m.Events) > 0 { // else it went since the search
			list = append(list, m)
		}
	}
	return list, next, nil
}

// match compares the probe with all events of a subject.
func (s *Shard) match(g id.Gallery, generation uint32, key *seal.Key, subject id.Subject, q *MatchQuery) (Match, error) {
	s.mu.RLock() // for the few comparisons with one subject
	defer s.mu.RUnlock()
	m := Match{Subject: subject}
	if s.closed {
		return m, ErrClosed
	}
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil {
		return m, err
	}
	for e := range sl.of(subject) {
		similarity, err := s.compare(sl, key, e, q.Probe)
		if err != nil {
			return m, err
		}
		score := s.table.Score(similarity)
		if score < q.Threshold {
			continue
		}
		m.Total++
		m.Events = append(m.Events, Hit{Subject: subject, Event: e.Event, Score: score})
		if len(m.Events) >= 2*q.EventsMax { // a subject may have as many as the gallery
			m.Events = bestOf(m.Events, q.EventsMax)
		}
	}
	m.Events = bestOf(m.Events, q.EventsMax)
	if q.Means {
		err = m.compareSubject(s, sl, key, q)
	}
	return m, err
}

// compareSubject compares the probe with the template of a subject whose events are compared.
func (m *Match) compareSubject(s *Shard, sl *slice, key *seal.Key, q *MatchQuery) error {
	first := sl.first(m.Subject)
	points, ok, err := s.subjectScore(sl, key, first, q.Probe)
	if err != nil || !ok || m.Total == 0 && points < q.Threshold {
		return err
	}
	if m.Total == 0 {
		best, err := s.bestEvent(sl, key, first, &Query{Probe: q.Probe})
		if err != nil {
			return err
		}
		m.Events = []Hit{best}
	}
	m.Events[0].SubjectScore = points
	return nil
}

// bestOf sorts hits and cuts them to limit.
func bestOf(hits []Hit, limit int) []Hit {
	slices.SortFunc(hits, scan.Compare)
	return hits[:min(len(hits), limit)]
}
