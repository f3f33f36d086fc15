package shard

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/scan"
	"facet/shard/segment"
)

// newMeansTwin returns a twin whose kinds of means have different tables.
func newMeansTwin(t testing.TB, seed uint64, dim int) *twin {
	t.Helper()
	w := newTwin(t, seed, dim, 2000)
	var of score.Means
	for kind := range of[:2] {
		table, err := score.NewTable([]score.Point{
			{Cosine: -1}, {Cosine: .1 * float64(kind+1), Score: 2000}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max},
		})
		must.Do(t, err)
		of[kind] = table
	}
	w.table = w.table.With(of)
	return w
}

// subjects returns the rows by subject in order of registration: that of the events' ids.
func (w *twin) subjects() map[id.Subject][]scan.Row {
	of := map[id.Subject][]scan.Row{}
	for _, event := range slices.SortedFunc(maps.Keys(w.rows), func(a, b id.Event) int { return bytes.Compare(a.UUID[:], b.UUID[:]) }) {
		row := w.rows[event]
		of[row.Subject] = append(of[row.Subject], row)
	}
	return of
}

// plainMean is the definition of a subject's template.
func plainMean(rows []scan.Row) []float32 {
	sum := make([]float64, len(rows[0].Template))
	for _, row := range rows {
		for i, x := range row.Template {
			sum[i] += float64(x)
		}
	}
	var square float64
	for _, x := range sum {
		square += float64(x * x)
	}
	unit := make([]float32, len(sum))
	for i, x := range sum {
		if square > 0 {
			unit[i] = float32(x / math.Sqrt(square))
		}
	}
	return unit
}

// plain is the definition of a search with means.
func (w *twin) plain(q Query) (list []Hit) {
	for subject, rows := range w.subjects() {
		var hits []Hit
		for _, row := range rows {
			if scan.Tagged(row.Tags, q.Tags) {
				hits = append(hits, Hit{Subject: subject, Event: row.Event, Score: w.table.Score(score.Dot(q.Probe, row.Template))})
			}
		}
		if len(hits) == 0 || q.Passed(subject) {
			continue
		}
		slices.SortFunc(hits, scan.Compare)
		if len(rows) > 1 && len(hits) == len(rows) {
			table := w.table.OfMean([]int{0, 0, 0, 1, 2}[min(len(rows), 4)])
			hits[0].SubjectScore = table.Score(score.Dot(q.Probe, plainMean(rows)))
		}
		hits = slices.DeleteFunc(hits, func(h Hit) bool { return h.Rank() < q.Threshold })
		if q.OneEach() {
			hits = hits[:min(len(hits), 1)]
		}
		list = append(list, hits...)
	}
	slices.SortFunc(list, q.Compare)
	return list[:min(len(list), q.Limit)]
}

// agreeMeans demands what the definition gives. Some probes are the template of the subject that was
// written last.
func (w *twin) agreeMeans(t testing.TB, q Query) {
	t.Helper()
	q.Means = true
	if rows := w.subjects()[w.wrote]; len(rows) > 1 && w.rand.IntN(2) == 0 {
		q.Probe = plainMean(rows)
	}
	want := w.plain(q)
	got, err := w.Search(context.Background(), testGallery, 1, w.key, q)
	if diff := difference(want, got); err != nil || len(want)+len(got) > 0 && diff != "" {
		t.Fatalf("%d rows, %+v: %v (-want +got):\n%s", len(w.rows), q, err, diff)
	}
	if w.rand.IntN(4) == 0 {
		w.Average(func(id.Gallery) bool { return false })
	}
	still, err := w.searchStill(context.Background(), testGallery, 1, w.key, &q)
	if diff := difference(got, still); err != nil || len(want) > 0 && diff != "" {
		t.Fatalf("%d rows, %+v, without writes: %v (-want +got):\n%s", len(w.rows), q, err, diff)
	}
	for _, h := range got[:min(len(got), 3)] {
		best, _, err := w.Best(testGallery, w.key, h.Subject, Query{Probe: q.Probe, Means: true})
		one := q
		one.Threshold, one.Limit, one.Tags, one.After, one.BySubject = 0, len(w.rows), nil, nil, false
		all := w.plain(one)
		at := slices.IndexFunc(all, func(of Hit) bool { return of.Subject == h.Subject })
		if err != nil || best != all[at].Rank() {
			t.Fatalf("best of subject %s: %d, %v, want %d", h.Subject, best, err, all[at].Rank())
		}
	}
}

// The setting goes off and on meanwhile, and the state through a snapshot.
func TestSearchWithMeansEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		w := newMeansTwin(t, seed, []int{1, 7, 16, 64, 192}[seed%5])
		for step := range []int{30, 300, 900}[seed%3] {
			w.write(t)
			if w.rand.IntN(1+step/60) == 0 {
				w.agreeMeans(t, w.query())
			}
			switch w.rand.IntN(60) {
			case 0:
				w.Average(func(id.Gallery) bool { return false })
			case 1:
				w.Average(func(id.Gallery) bool { return true })
			case 2:
				w.agree(t, w.query())
			}
		}
		for range 20 {
			w.agreeMeans(t, w.query())
		}
		w.Close()
	}
}

func TestMatchesWithMeansEqualPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		w := newMeansTwin(t, seed, []int{7, 64}[seed])
		for range 400 {
			w.write(t)
		}
		for range 30 {
			q := MatchQuery{Probe: w.template(), Threshold: 1000 * w.rand.IntN(9), Limit: 1 + w.rand.IntN(9), EventsMax: 3, Means: true}
			all := w.plain(Query{Probe: q.Probe, Limit: len(w.rows)})
			var want []Match
			for subject := range w.subjects() {
				m := Match{Subject: subject}
				for _, h := range all {
					if h.Subject == subject && h.Rank() >= q.Threshold {
						m.Events = append(m.Events, h)
					}
					if h.Subject == subject && h.Score >= q.Threshold {
						m.Total++
					}
				}
				if m.Events = m.Events[:min(len(m.Events), q.EventsMax)]; len(m.Events) > 0 {
					want = append(want, m)
				}
			}
			slices.SortFunc(want, func(a, b Match) int { return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:]) })
			if diff := difference(want, w.pages(t, q)); diff != "" {
				t.Fatalf("seed %d, threshold %d, pages of %d (-want +got):\n%s", seed, q.Threshold, q.Limit, diff)
			}
		}
		w.Close()
	}
}

// Beside the searches the events of each person change in turn, but each person is always enrolled,
// and only the mean of two events reaches the threshold.
func TestSearchNeverMissesSubjectWithMean(t *testing.T) {
	t.Parallel()
	const persons = 6
	s, key := newTestShard(t, 4000), testKey(t, 1)
	left, right, probe := axis(1), axis(1), axis(1)
	left[1], left[2], right[1], right[2] = .8, .6, .8, -.6
	threshold := s.table.Score(.9)
	for n := range 1500 { // makes the scans longer
		put(t, s, newEvent(key, 10_000+n, axis(0)))
	}
	var second [persons]Event
	for n := range second {
		first := put(t, s, newEvent(key, n, left))
		second[n] = further(key, first, 100+n, right)
		must.Do(t, s.Add(second[n], FreeSlots))
	}
	q := Query{Probe: probe, Threshold: threshold, Limit: persons + 1, BySubject: true, Means: true}
	var done atomic.Bool
	var searches atomic.Int64
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !done.Load() {
				hits, err := s.Search(t.Context(), testGallery, 1, key, q)
				if err != nil || len(hits) != persons {
					t.Errorf("%d hits, %v, want %d", len(hits), err, persons)
					return
				}
				searches.Add(1)
			}
		})
	}
	for round := 0; round < 300 || searches.Load() < 200 && round < 20_000; round++ {
		e := second[round%persons]
		of, _ := s.Events(testGallery, 1, e.Subject)
		r := replacement(key, e, 20_000, right)
		r.Revision = of[1].Revision + 1
		r.Sealed = SealFace(key, FaceRef{testGallery, 1, r.Subject, r.Event, r.Revision}, engine.Face{Template: right})
		update(t, s, r)
	}
	done.Store(true)
	wg.Wait()
}

// A mean counts once it is due, as much before it is derived as afterwards, and in no count of events.
func TestMemoryEstimateCoversMeans(t *testing.T) {
	t.Parallel()
	const n, dim = 4000, 192
	s, key := newTestShard(t, 2*n), testKey(t, 1)
	s.arena = kernel.NewArena(0)
	template := make(engine.Template, dim)
	template[3] = 1
	for i := range n {
		e := put(t, s, newEvent(key, i, template))
		must.Do(t, s.Add(further(key, e, 10_000+i, template), FreeSlots))
	}
	warm := func() int64 {
		t.Helper()
		must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
		return s.Memory()
	}
	without := warm()
	s.Average(func(id.Gallery) bool { return true })
	due := s.Memory()
	if cold := s.Cold(); len(cold) != 1 || cold[0].Templates != n {
		t.Errorf("%v wait, want %d means", cold, n)
	}
	with := warm()
	if least, most := int64(n*4*dim), int64(n*3*4*dim); with-without < least || with-without > most {
		t.Errorf("%d means count %d bytes, want %d to %d", n, with-without, least, most)
	}
	if ratio := float64(due-without) / float64(with-without); ratio < .8 || ratio > 1.25 {
		t.Errorf("they count %d bytes before they are derived, %d afterwards", due-without, with-without)
	}
	if used := s.arena.Used(); used > with {
		t.Errorf("%d bytes of the arena are used, more than the estimate %d", used, with)
	}
	if u := s.Usage(testGallery); u.Active != 2*n {
		t.Errorf("%d events count, want %d", u.Active, 2*n)
	}
	s.Average(func(id.Gallery) bool { return false })
	if off := s.Memory(); off != without {
		t.Errorf("%d bytes when it is off again, %d before", off, without)
	}
}

// A shard with means, derived or not, whose faces are in segments or in memory, has the records of
// one without, and finds the same after a load.
func TestMeansAreNoPartOfTheState(t *testing.T) {
	t.Parallel()
	w := newMeansTwin(t, 5, 64)
	kept := newKeptShard(t, 2000)
	kept.table = w.table
	w.Shard = kept
	state := func() []byte {
		t.Helper()
		v := w.Freeze()
		defer v.Release()
		if _, err := v.Settle(segment.Share); err != nil {
			t.Fatal(err)
		}
		return records(t, v)
	}
	for range 6 {
		for range 60 {
			w.write(t)
		}
		w.Average(func(id.Gallery) bool { return false })
		without := state()
		w.Average(func(id.Gallery) bool { return true })
		if !bytes.Equal(state(), without) {
			t.Error("a shard with means has other records")
		}
		w.agreeMeans(t, w.query())
		if !bytes.Equal(state(), without) {
			t.Error("a shard with derived means has other records")
		}
		l, err := loaded(frozenInto(t, kept, segment.Share), kept.Store())
		must.Do(t, err)
		kept.Replace(l)
		l.Close()
		for range 20 {
			w.agreeMeans(t, w.query())
		}
	}
}

// The mean of left and right is the probe; with any other event it is not. Neither is like the probe
// itself.
func TestMeanFollowsEachWrite(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 40), testKey(t, 1)
	left, right := axis(1), axis(1)
	left[1], left[2], right[1], right[2] = .8, .6, .8, -.6
	threshold := s.table.Score(.9)
	check := func(what string, want bool) {
		t.Helper()
		hits, err := s.Search(t.Context(), testGallery, 1, key, Query{Probe: axis(1), Threshold: threshold, Limit: 1, Means: true})
		if err != nil || len(hits) == 1 != want || want && hits[0].Score >= threshold {
			t.Fatalf("%s: %v, %v, want a hit by the mean: %v", what, hits, err, want)
		}
	}
	remove := func(e Event, time int64) {
		t.Helper()
		must.Do(t, s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: e.Event, Time: time}))
	}
	first := put(t, s, newEvent(key, 1, left))
	check("one event", false)
	second := add(t, s, further(key, first, 2, right))
	check("two events", true)
	far := add(t, s, further(key, first, 3, axis(5)))
	check("three events", false)
	remove(far, 4)
	check("one of three removed", true)
	update(t, s, replacement(key, second, 5, axis(5)))
	check("the second updated", false)
	remove(second, 6)
	far = further(key, first, 7, right)
	far.Expires = 20
	add(t, s, far)
	check("the second registered again", true)
	if n := expireDue(t, s, 20, never); n != 1 {
		t.Fatalf("%d events expire", n)
	}
	check("it expired", false)
	pending := further(key, first, 21, right)
	number, err := s.HoldFurther(pending, FreeSlots)
	check("another is pending", false)
	if err == nil {
		_, err = s.Activate(PendingRef{Gallery: testGallery, Generation: 1, Subject: first.Subject, Event: pending.Event, Number: number, Time: 21})
	}
	must.Do(t, err)
	check("it is active", true)
	m := s.state.slices[testGallery].means.Load()
	row := m.entries.first(first.Subject)
	stored, _ := m.kindOf(row).matrix.At(int(row.Place))
	must.Do(t, s.Erase(Erasure{testGallery, 1, first.Subject, 22}))
	if slices.Max(stored) != 0 || slices.Min(stored) != 0 || m.entries.Len() > 0 || len(m.sources) > 0 {
		t.Errorf("after the erasure %v, %d rows and %d sources stay", stored, m.entries.Len(), len(m.sources))
	}
	check("erased", false)
}

// The templates cancel each other out: their mean is the probe if they are added in order of
// registration, and zeros in any other order that the test leads to.
func TestMeanAddsInOrderOfRegistration(t *testing.T) {
	t.Parallel()
	const tiny = 0x1p-60
	s, key := newTestShard(t, 20), testKey(t, 1)
	a, b, c, d := axis(0), axis(1), axis(0), axis(1)
	b[0], c[0], d[1] = tiny, -1, -1
	first := put(t, s, newEvent(key, 1, a))
	third := add(t, s, further(key, first, 2, c))
	add(t, s, further(key, first, 3, b))
	add(t, s, further(key, first, 4, d))
	check := func(what string, s *Shard) {
		t.Helper()
		hits, err := s.Search(t.Context(), testGallery, 1, key, Query{Probe: axis(0), Limit: 1, Means: true})
		if err != nil || len(hits) != 1 || hits[0].SubjectScore != score.Max {
			t.Errorf("%s: %v, %v, want a mean with the score %d", what, hits, err, score.Max)
		}
	}
	check("registered", s)
	update(t, s, replacement(key, third, 1000, c))
	check("updated", s)
	update(t, s, replacement(key, first, 1001, a))
	check("the first updated", s)
	check("loaded", reloaded(t, s))
	must.Do(t, s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: first.Subject, Event: third.Event, Time: 1002}))
	add(t, s, further(key, first, 2000, c))
	hits, err := s.Search(t.Context(), testGallery, 1, key, Query{Probe: axis(0), Limit: 1, Means: true})
	if err != nil || len(hits) != 1 || hits[0].SubjectScore == score.Max {
		t.Errorf("registered again: %v, %v, want a mean of another order", hits, err)
	}
}

// A subject gets events with other tags while a search opens templates. The rows of its means have
// patterns that no row had when the search began.
func TestSearchSeesPatternsOfLateRows(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	tagged := func(e Event, tags ...uint32) Event {
		e.Tags = tags
		return e
	}
	left, right, probe := axis(1), axis(1), axis(1)
	left[1], left[2], right[1], right[2] = .8, .6, .8, -.6
	first := put(t, s, tagged(newEvent(key, 1, left), 3))
	add(t, s, tagged(further(key, first, 2, right), 3, 4))
	q := Query{Probe: probe, Threshold: s.table.Score(.9), Limit: 3, Tags: []uint32{3}, Means: true}
	sl := s.state.slices[testGallery]
	parts := partsOf(s, sl, &q)
	changes := sl.changes.Load()
	third := further(key, first, 3, probe)
	add(t, s, tagged(third, 3, 5))
	must.Do(t, parts.open(t.Context(), key))
	must.Do(t, s.Remove(Removal{Gallery: testGallery, Generation: 1, Subject: first.Subject, Event: third.Event}))
	add(t, s, tagged(further(key, first, 4, right), 3, 6))
	must.Do(t, parts.open(t.Context(), key))
	defer parts.end()
	must.Do(t, parts.scan(t.Context()))
	late := put(t, s, tagged(newEvent(key, 11, left), 3)) // its pattern has a number of its own
	add(t, s, tagged(further(key, late, 12, right), 3, 7))
	must.Do(t, parts.open(t.Context(), key))
	if ok, err := parts.settle(key); sl.changes.Load() == changes || !ok || err != nil {
		t.Fatalf("the search does not see the writes: %v", err)
	}
	hits, err := parts.combine(key)
	if err != nil || len(hits) != 2 || hits[0].SubjectScore < q.Threshold || hits[1].SubjectScore < q.Threshold {
		t.Errorf("got %v, %v, want both subjects by their means", hits, err)
	}
}

// A gallery may be deleted after its events were opened and before their means are derived.
func TestMeansOfDroppedSliceAreNotDerived(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	add(t, s, further(key, e, 2, axis(2)))
	s.Average(func(id.Gallery) bool { return true })
	sl := s.state.slices[testGallery]
	must.Do(t, s.open(t.Context(), sl, key))
	sl.templates.drop() // Fence drops the events first
	m := sl.means.Load()
	faces := make([]kernel.Prepared, 1)
	if _, n, err := s.prepareMeans(sl, m, 0, []record.Row{m.entries.First(e.Subject)}, faces); n != 0 || !errors.Is(err, errClosedTemplate) {
		t.Errorf("%d means, %v, want errClosedTemplate", n, err)
	}
}
