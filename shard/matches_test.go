package shard

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// plainMatches is the definition: all events of each subject, the subjects in order.
func (w *twin) plainMatches(q MatchQuery) (list []Match) {
	of := map[id.Subject][]Hit{}
	for _, row := range w.rows {
		if s := w.table.Score(score.Dot(q.Probe, row.Template)); s >= q.Threshold {
			of[row.Subject] = append(of[row.Subject], Hit{Subject: row.Subject, Event: row.Event, Score: s})
		}
	}
	for subject, hits := range of {
		slices.SortFunc(hits, scan.Compare)
		list = append(list, Match{Subject: subject, Events: hits[:min(len(hits), q.EventsMax)], Total: len(hits)})
	}
	slices.SortFunc(list, func(a, b Match) int { return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:]) })
	return list
}

// pages reads a run to its end.
func (w *twin) pages(t testing.TB, q MatchQuery) (list []Match) {
	t.Helper()
	for {
		page, next, err := w.Matches(t.Context(), testGallery, 1, w.key, q)
		must.Do(t, err)
		list = append(list, page...)
		if next.IsZero() {
			return list
		}
		q.After = next
	}
}

// The templates of a twin repeat, so many events tie, also at the threshold and at the edges
// of pages.
func TestMatchesEqualPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		w := newTwin(t, seed, []int{1, 7, 64}[seed], 2000)
		for range 400 {
			w.write(t)
		}
		for range 30 {
			of := w.query()
			q := MatchQuery{Probe: of.Probe, Threshold: of.Threshold, Limit: 1 + w.rand.IntN(9), EventsMax: 1 + w.rand.IntN(3)}
			if row, ok := w.pick(); ok && w.rand.IntN(2) == 0 { // someone is at the threshold exactly
				q.Threshold = w.table.Score(score.Dot(q.Probe, row.Template))
			}
			if diff := difference(w.plainMatches(q), w.pages(t, q)); diff != "" {
				t.Fatalf("seed %d, threshold %d, pages of %d (-want +got):\n%s", seed, q.Threshold, q.Limit, diff)
			}
		}
		w.Close()
	}
}

// Beside the pages, each person in turn gets a better or a worse template, and others come and go.
// The persons stay at or above the threshold all the time.
func TestMatchesShowLastingSubjectsOnce(t *testing.T) {
	t.Parallel()
	const persons = 60
	s, key := newTestShard(t, 4000), testKey(t, 1)
	like := [2]engine.Template{axis(1), axis(1)}
	like[1][1], like[1][2] = .8, .6
	threshold := s.table.Score(score.Dot(like[0], like[1]))
	var now [persons]Event
	for n := range now {
		now[n] = put(t, s, newEvent(key, n, axis(1)))
	}
	check := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; !done.Load() && !t.Failed(); n++ {
			other := newEvent(key, 10_000+n%50_000, axis(1))
			check(s.Put(other, OldestDeleted))
			old := &now[n%persons]
			e := newEvent(key, n, like[n/persons%2])
			e.Subject, e.Event.UUID[0], e.Event.UUID[3] = old.Subject, 4, byte(n>>16)
			e.Sealed = SealFace(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, engine.Face{Template: like[n/persons%2]})
			check(s.Add(e, OldestDeleted))
			check(s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: old.Subject, Event: old.Event, Time: int64(n)}))
			*old = e
			check(s.Erase(Erasure{Gallery: testGallery, Generation: 1, Subject: other.Subject, Time: int64(n)}))
		}
	})
	w := &twin{Shard: s, key: key}
	for run := range 80 {
		seen := map[id.Subject]int{}
		for _, m := range w.pages(t, MatchQuery{Probe: axis(1), Threshold: threshold, Limit: 1 + run%7, EventsMax: 5}) {
			seen[m.Subject]++
		}
		for n := range persons {
			if subject := newEvent(key, n, axis(1)).Subject; seen[subject] != 1 {
				t.Errorf("run %d shows person %d %d times", run, n, seen[subject])
			}
		}
	}
	done.Store(true)
	wg.Wait()
}
