package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/scan"
	"facet/shard/seal"
)

// scansMax is how often a search scans beside writes. One more scan holds them off.
const scansMax = 4

// Query asks for the events that are most similar to a probe.
type Query = scan.Query

// Hit is an event that a search found.
type Hit = scan.Hit

// Search gives the best q.Limit events (or subjects) of a gallery's slice in the
// order of scan.Compare: exactly those of one moment between its begin and its end,
// whatever is written meanwhile. No slice is no hit. It fails as a whole if one
// template can't be opened with key; other errors wrap ErrGeneration, ErrQuery,
// ErrClosed, kernel.ErrBusy, or ctx's.
//
// Rows are scanned without a lock. Then what changed meanwhile is looked up: events
// that came are compared by themselves, hits that went are taken off. Only if a place
// became free for an event that the scan has not kept is it done again.
func (s *Shard) Search(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q Query) ([]Hit, error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: limit %d", ErrQuery, q.Limit)
	}
	for range scansMax {
		hits, done, err := s.searchBeside(ctx, g, generation, key, &q)
		if err != nil {
			return nil, fmt.Errorf("search gallery %s: %w", g, err)
		}
		if done {
			return hits, nil
		}
	}
	hits, err := s.searchStill(ctx, g, generation, key, &q)
	if err != nil {
		return nil, fmt.Errorf("search gallery %s: %w", g, err)
	}
	return hits, nil
}

// enter gives the slice of a gallery for use until done is called, or nil if there
// is nothing to search. Close waits for done.
func (s *Shard) enter(g id.Gallery, generation uint32) (sl *slice, done func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	sl, err = s.state.slice(g, generation)
	if err != nil || sl == nil || len(sl.subjects) == 0 {
		return nil, nil, err
	}
	s.using.Add(1)
	return sl, s.using.Done, nil
}

// searchBeside scans once, beside writes; it is not done if the scan is to be done
// again.
func (s *Shard) searchBeside(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q *Query) (hits []Hit, done bool, err error) {
	sl, leave, err := s.enter(g, generation)
	if err != nil || sl == nil {
		return nil, true, err
	}
	defer leave()
	changes := sl.changes.Load()
	if err := s.open(ctx, sl, key); err != nil {
		return nil, false, err
	}
	now := sl.templates.begin()
	defer sl.templates.end()
	if now.queue == nil { // all of it went
		return nil, false, nil
	}
	if hits, err = queued(ctx, now.queue, q); err != nil {
		return nil, false, err
	}
	if s.still(sl, changes) {
		return hits, true, nil
	}
	if err := s.open(ctx, sl, key); err != nil {
		return nil, false, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if same, err := s.state.slice(g, generation); err != nil || same != sl {
		return nil, false, err
	}
	if err := s.open(ctx, sl, key); err != nil { // the few that came since
		return nil, false, err
	}
	came, ok := sl.templates.since(now.from, s.table, q)
	if !ok {
		return nil, false, nil
	}
	hits, done = settled(hits, came, q, func(h Hit) bool { return sl.find(h.Subject, h.Event) != nil })
	return hits, done, nil
}

// still tells whether a slice has not changed since changes were counted. It waits for a
// write that is under way: of an update, the old template may be gone and not be counted yet.
func (s *Shard) still(sl *slice, changes uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sl.changes.Load() == changes
}

// searchStill scans while no write is let in.
func (s *Shard) searchStill(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q *Query) ([]Hit, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil || len(sl.subjects) == 0 {
		return nil, err
	}
	if err := s.open(ctx, sl, key); err != nil {
		return nil, err
	}
	now := sl.templates.begin()
	defer sl.templates.end()
	return queued(ctx, now.queue, q)
}

// queued searches a matrix.
func queued(ctx context.Context, queue *kernel.Queue, q *Query) ([]Hit, error) {
	hits, err := queue.Search(ctx, *q)
	if errors.Is(err, kernel.ErrTemplate) {
		err = fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return hits, err
}

// settled brings the hits of a scan up to date: came are the events added since it
// began, with their scores or −1, and there tells whether a hit's event is still
// active. It is not ok if a hit is lost in whose place another may be due.
func settled(hits, came []Hit, q *Query, there func(Hit) bool) (now []Hit, ok bool) {
	type name struct {
		subject id.Subject
		event   id.Event
	}
	fresh := make(map[name]int, len(came))
	for _, h := range came {
		fresh[name{h.Subject, h.Event}] = h.Score
	}
	closed := q.BySubject || len(hits) == q.Limit
	for _, h := range hits {
		score, again := fresh[name{h.Subject, h.Event}]
		switch {
		case !there(h), again && score < h.Score:
			if closed {
				return nil, false
			}
		case !again:
			now = append(now, h)
		}
	}
	for n, score := range fresh {
		if score >= 0 {
			now = append(now, Hit{Subject: n.subject, Event: n.event, Score: score})
		}
	}
	slices.SortFunc(now, scan.Compare)
	if q.BySubject {
		seen := make(map[id.Subject]bool, len(now))
		now = slices.DeleteFunc(now, func(h Hit) bool {
			again := seen[h.Subject]
			seen[h.Subject] = true
			return again
		})
	}
	return now[:min(len(now), q.Limit)], true
}

// Best gives the highest score of the probe with the active events of a subject;
// ok is false if the subject has none. Errors are as of Search.
func (s *Shard) Best(g id.Gallery, key *seal.Key, subject id.Subject, probe engine.Template) (best int, ok bool, err error) {
	s.mu.RLock() // over few comparisons of one subject
	defer s.mu.RUnlock()
	if s.closed {
		return 0, false, ErrClosed
	}
	sl := s.state.slices[g]
	if sl == nil || sl.subjects[subject] == nil {
		return 0, false, nil
	}
	if err := finite(probe); err != nil {
		return 0, false, err
	}
	for e := range sl.of(subject) {
		similarity, err := s.compare(sl, key, e, probe)
		if err != nil {
			return 0, false, fmt.Errorf("compare with subject %s: %w", subject, err)
		}
		best = max(best, s.table.Score(similarity))
	}
	return best, true, nil
}

// compare gives the similarity of a probe and an active entry, which is decrypted
// for that if it is not open. Shard.mu is held for reading.
func (s *Shard) compare(sl *slice, key *seal.Key, e *entry, probe engine.Template) (float32, error) {
	if similarity, ok, err := sl.templates.compare(e, probe); ok || err != nil {
		return similarity, err
	}
	u := unsealer{store: &s.sealed, key: key}
	defer u.clear()
	template, err := u.open(nil, sl.ref(e), e)
	if err == nil {
		err = alike(len(probe), len(template))
	}
	if err != nil {
		return 0, err
	}
	return score.Dot(probe, template), nil
}

// compare gives the similarity of a probe and an entry; ok is false if it is not open.
func (t *templates) compare(e *entry, probe engine.Template) (similarity float32, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.place < 0 {
		return 0, false, nil
	}
	if err := alike(len(probe), t.matrix.Dim()); err != nil {
		return 0, false, err
	}
	return score.Dot(probe, t.matrix.At(int(e.place))), true, nil
}

func alike(probe, template int) error {
	if probe != template {
		return fmt.Errorf("%w: a probe of %d numbers among templates of %d", ErrQuery, probe, template)
	}
	return nil
}

// finite refuses a probe with a number that is not finite.
func finite(probe engine.Template) error {
	for i, x := range probe {
		if x-x != 0 {
			return fmt.Errorf("%w: number %d of the probe is %v", ErrQuery, i, x)
		}
	}
	return nil
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
	e := sl.find(subject, event)
	if e == nil || e.revision != revision {
		return nil, false
	}
	sealed, err := s.sealed.read(e)
	return sealed, err == nil
}
