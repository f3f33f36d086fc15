package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/scan"
	"facet/shard/seal"
)

// scansMax is how often a search scans while writes go on. Then it scans once more and makes writes
// wait.
const scansMax = 4

// Query asks for the events that are most similar to a probe.
type Query = scan.Query

// Hit is an event that a search found.
type Hit = scan.Hit

// Search returns the best q.Limit events (or subjects) of a gallery's slice, in the order of
// scan.Compare. The hits are exact for one moment during the search, even if writes go on. Without
// a slice there are no hits. If key does not open one of the templates, the whole search fails.
// Other errors wrap ErrGeneration, ErrQuery, ErrClosed, kernel.ErrBusy, or the error of ctx.
//
// With q.Means it also compares the subjects' own templates. The best event of a subject whose
// template has a higher score then has the place of that score, and is a hit even if its own score is
// below the threshold. With tags this counts only for subjects all of whose events match.
//
// Search scans rows without a lock and then looks up what changed. It compares each new event, and
// drops hits whose events are gone. It scans again only if a dropped hit leaves room for a row that
// the scan did not keep.
//
// With q.Coverage it says which events it went through, at the moment for which the hits are exact.
// Subjects' own templates don't count.
func (s *Shard) Search(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q Query) (hits []Hit, err error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: limit %d", ErrQuery, q.Limit)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("search gallery %s: %w", g, err)
		}
	}()
	for range scansMax {
		if hits, done, err := s.searchBeside(ctx, g, generation, key, &q); done || err != nil {
			return hits, err
		}
	}
	return s.searchStill(ctx, g, generation, key, &q)
}

// enter returns the slice of a gallery for use until done is called, or nil if there is nothing to
// search. Close waits for done.
func (s *Shard) enter(g id.Gallery, generation uint32) (sl *slice, done func(), err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	sl, err = s.state.slice(g, generation)
	if err != nil || sl == nil || sl.Subjects() == 0 {
		return nil, nil, err
	}
	s.using.Add(1)
	unpin := sl.Pin()
	return sl, func() { unpin(); s.using.Done() }, nil
}

// searchBeside scans once while writes go on. done is false if another scan is needed.
func (s *Shard) searchBeside(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q *Query) (hits []Hit, done bool, err error) {
	sl, leave, err := s.enter(g, generation)
	if err != nil || sl == nil {
		// A receipt of nothing needs the index at which nothing was there.
		return nil, err != nil || q.Coverage == nil, err
	}
	defer leave()
	sl.searched.Store(time.Now().UnixMilli())
	parts := partsOf(s, sl, q)
	defer parts.leave()
	changes := sl.changes.Load()
	if err := parts.open(ctx, key); err != nil {
		return nil, false, err
	}
	defer parts.end()
	if err := parts.scan(ctx); err != nil {
		return nil, false, err
	}
	if !s.still(sl, changes) {
		if err := parts.open(ctx, key); err != nil {
			return nil, false, err
		}
	}
	defer hold(s, q.Coverage)()
	if sl.changes.Load() != changes {
		if same, err := s.state.slice(g, generation); err != nil || same != sl || !parts.current() {
			return nil, false, err
		}
		if err := parts.open(ctx, key); err != nil { // the few that came meanwhile
			return nil, false, err
		}
		if same, err := parts.settle(key); err != nil || !same {
			return nil, false, err
		}
	}
	if !parts.current() {
		return nil, false, nil
	}
	hits, err = parts.combine(key)
	return hits, true, err
}

// still reports whether the slice's count of changes is the given one. It waits for a write under
// way, because an update may have erased its old template and not counted the change yet.
func (s *Shard) still(sl *slice, changes uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sl.changes.Load() == changes
}

// searchStill scans while writes wait.
func (s *Shard) searchStill(ctx context.Context, g id.Gallery, generation uint32, key *seal.Key, q *Query) ([]Hit, error) {
	defer hold(s, q.Coverage)()
	if s.closed {
		return nil, ErrClosed
	}
	sl, err := s.state.slice(g, generation)
	if err != nil || sl == nil || sl.Subjects() == 0 {
		sl.cover(q.Coverage)
		return nil, err
	}
	m := sl.means.Load()
	if q.Means && m == nil { // the slice lost them a moment ago, and gets none while the lock is held
		m = meansOf(s.arena, sl)
		defer m.drop()
	}
	parts := newParts(&s.comparator, sl, m, q)
	defer parts.leave()
	if err := parts.open(ctx, key); err != nil {
		return nil, err
	}
	defer parts.end()
	if err := parts.scan(ctx); err != nil {
		return nil, err
	}
	return parts.combine(key)
}

func queued(ctx context.Context, queue *kernel.Queue, q *Query) ([]Hit, error) {
	hits, err := queue.Search(ctx, *q)
	if errors.Is(err, kernel.ErrTemplate) {
		err = fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return hits, err
}

// settled brings the hits of a scan up to date. came has the events added since the scan began,
// with their scores or −1. there reports whether a hit's event is still active. ok is false if a
// hit is lost and a row that the scan left out may take its place.
func settled(hits, came []Hit, q *Query, there func(Hit) bool) (now []Hit, ok bool) {
	type name struct {
		subject id.Subject
		event   id.Event
	}
	fresh := make(map[name]int, len(came))
	for _, h := range came {
		fresh[name{h.Subject, h.Event}] = h.Score
	}
	closed := q.OneEach() || len(hits) == q.Limit
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
	if q.OneEach() {
		seen := make(map[id.Subject]bool, len(now))
		now = slices.DeleteFunc(now, func(h Hit) bool {
			again := seen[h.Subject]
			seen[h.Subject] = true
			return again
		})
	}
	slices.SortFunc(now, q.Compare)
	return now[:min(len(now), q.Limit)], true
}

// Best returns the highest score of the probe with the active events of a subject, and with q.Means
// also with the subject's own template. ok is false if the subject has no event. Best reads no other
// field of q than Probe and Means. Errors are those of Search.
func (s *Shard) Best(g id.Gallery, key *seal.Key, subject id.Subject, q Query) (best int, ok bool, err error) {
	s.mu.RLock() // for the few comparisons with one subject
	defer s.mu.RUnlock()
	if s.closed {
		return 0, false, ErrClosed
	}
	sl := s.state.slices[g]
	if sl == nil || sl.first(subject).none() {
		return 0, false, nil
	}
	if err := finite(q.Probe); err != nil {
		return 0, false, err
	}
	h, err := s.bestEvent(sl, key, sl.first(subject), &q)
	if err == nil && q.Means {
		h.SubjectScore, _, err = s.subjectScore(sl, key, sl.first(subject), q.Probe)
	}
	if err != nil {
		return 0, false, fmt.Errorf("compare with subject %s: %w", subject, err)
	}
	return h.Rank(), true, nil
}

// bestEvent returns the event of a subject that is most similar to the probe, whether or not it
// reaches the threshold. Shard.mu is held for reading.
func (c *comparator) bestEvent(sl *slice, key *seal.Key, first member, q *Query) (best Hit, err error) {
	for e := range sl.from(first) {
		similarity, err := c.compare(sl, key, e, q.Probe)
		if err != nil {
			return best, err
		}
		h := Hit{Subject: e.Subject, Event: e.Event, Score: c.table.Score(similarity)}
		if e.row == first.row || scan.Compare(h, best) < 0 {
			best = h
		}
	}
	return best, nil
}

// compare returns the similarity of a probe and an active entry, and decrypts the entry if it is
// not open. Shard.mu is held for reading.
func (c *comparator) compare(sl *slice, key *seal.Key, e member, probe engine.Template) (float32, error) {
	if similarity, ok, err := sl.templates.compare(e.entry, probe); ok || err != nil {
		return similarity, err
	}
	u := newUnsealer(&c.sealed, key)
	defer u.free()
	set := c.sealed.current()
	defer set.Release()
	template, err := u.openOne(set, sl.ref(e.entry), e.entry)
	if err == nil {
		err = alike(len(probe), len(template))
	}
	if err != nil {
		return 0, err
	}
	return score.Dot(probe, template), nil
}

// compare returns the similarity of a probe and an entry; ok is false if its exact row is not in
// memory.
func (t *templates) compare(e *entry, probe engine.Template) (similarity float32, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Place < 0 {
		return 0, false, nil
	}
	if err := alike(len(probe), t.matrix.Dim()); err != nil {
		return 0, false, err
	}
	template, ok := t.matrix.At(int(e.Place))
	if !ok {
		return 0, false, nil
	}
	return score.Dot(probe, template), true, nil
}

func alike(probe, template int) error {
	if probe != template {
		return fmt.Errorf("%w: a probe of %d numbers among templates of %d", ErrQuery, probe, template)
	}
	return nil
}

// finite returns an error for a probe with a number that is not finite.
func finite(probe engine.Template) error {
	for i, x := range probe {
		if x-x != 0 {
			return fmt.Errorf("%w: number %d of the probe is %v", ErrQuery, i, x)
		}
	}
	return nil
}

// Sealed returns the sealed face of an active event in one revision. The face must not be changed.
// ok is false if there is no such face.
func (s *Shard) Sealed(g id.Gallery, subject id.Subject, event id.Event, revision uint32) (sealed []byte, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	sl := s.state.slices[g]
	if sl == nil {
		return nil, false
	}
	e := sl.find(subject, event)
	if e.none() || e.Revision != revision {
		return nil, false
	}
	sealed, _, err := s.sealed.parts(e.entry)
	return sealed, err == nil
}
