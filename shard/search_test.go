package shard

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/scan"
	"facet/shard/seal"
)

// twin is a shard beside a plain list of what it has to hold.
type twin struct {
	*Shard
	key  *seal.Key
	rand *rand.Rand
	dim  int
	rows map[id.Event]scan.Row
	made int
	time int64
	// wrote is the subject of the last write.
	wrote id.Subject
	// ordinary makes all templates ordinary.
	ordinary bool
}

func newTwin(t testing.TB, seed uint64, dim int, slots uint32) *twin {
	t.Helper()
	return &twin{
		Shard: newTestShard(t, slots), key: testKey(t, 1), rand: rand.New(rand.NewPCG(seed, 77)), dim: dim,
		rows: map[id.Event]scan.Row{},
	}
}

// template is ordinary, or made to be hard on a bound.
func (w *twin) template() engine.Template {
	if w.ordinary {
		return randomTemplate(w.rand, w.dim)
	}
	v := make(engine.Template, w.dim)
	at := w.rand.IntN(w.dim)
	switch w.rand.IntN(12) {
	case 0: // zero
	case 1:
		v[at] = 1
	case 2:
		v[at] = -1
	case 3:
		v[at] = 1e-42
	case 4:
		v[at] = math.MaxFloat32
	case 5:
		for i := range v {
			v[i] = float32(1 / math.Sqrt(float64(w.dim)))
		}
	case 6, 7: // one that is there, or nearly
		for _, r := range w.rows {
			copy(v, r.Template)
			v[at] += float32(w.rand.IntN(2)) * 1e-3
			break
		}
	default:
		return randomTemplate(w.rand, w.dim)
	}
	return v
}

func (w *twin) tags() []uint32 {
	var tags []uint32
	for range w.rand.IntN(3) {
		tags = append(tags, uint32(w.rand.IntN(90))+1<<31*uint32(w.rand.IntN(2)))
	}
	return tags
}

// pick returns one of the events.
func (w *twin) pick() (scan.Row, bool) {
	if len(w.rows) == 0 {
		return scan.Row{}, false
	}
	events := slices.SortedFunc(maps.Keys(w.rows), func(a, b id.Event) int { return slices.Compare(a.UUID[:], b.UUID[:]) })
	return w.rows[events[w.rand.IntN(len(events))]], true
}

func (w *twin) seal(e *Event, revision uint32, v engine.Template) []byte {
	return SealFace(w.key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, revision}, engine.Face{Template: v})
}

// write changes something.
func (w *twin) write(t testing.TB) {
	t.Helper()
	w.made++
	w.time++
	row, some := w.pick()
	e := newEvent(w.key, w.made, axis(0))
	e.Time, e.Tags = w.time, w.tags()
	v := w.template()
	check := func(err error) {
		t.Helper()
		must.Do(t, err)
	}
	kind := w.rand.IntN(10)
	if !some {
		kind = 9
	}
	w.wrote = row.Subject
	switch kind {
	case 0:
		check(w.Erase(Erasure{testGallery, 1, row.Subject, w.time}))
		maps.DeleteFunc(w.rows, func(_ id.Event, r scan.Row) bool { return r.Subject == row.Subject })
	case 1:
		check(w.Remove(Removal{testGallery, 1, row.Subject, row.Event, w.time, Heir{}}))
		delete(w.rows, row.Event)
	case 2, 3:
		of, err := w.Events(testGallery, 1, row.Subject)
		check(err)
		revision := of[slices.IndexFunc(of, func(a Active) bool { return a.Event == row.Event })].Revision + 1
		e.Subject, e.Event = row.Subject, row.Event
		_, err = w.Update(Replacement{
			Gallery: testGallery, Generation: 1, Subject: row.Subject, Event: row.Event, Time: w.time, Tags: e.Tags,
			Sealed: w.seal(&e, revision, v), Revision: revision,
		})
		check(err)
		w.rows[row.Event] = scan.Row{Subject: row.Subject, Event: row.Event, Tags: e.Tags, Template: v}
	case 4, 5:
		e.Subject = row.Subject
		e.Sealed = w.seal(&e, 0, v)
		check(w.Add(e, OldestDeleted))
		w.rows[e.Event] = scan.Row{Subject: e.Subject, Event: e.Event, Tags: e.Tags, Template: v}
	default:
		w.wrote = e.Subject
		e.Sealed = w.seal(&e, 0, v)
		check(w.Put(e, OldestDeleted))
		w.rows[e.Event] = scan.Row{Subject: e.Subject, Event: e.Event, Tags: e.Tags, Template: v}
	}
}

func (w *twin) query() Query {
	q := Query{
		Probe: w.template(), Limit: 1 + w.rand.IntN(20), Threshold: []int{0, 1, 5000, 9000, score.Max}[w.rand.IntN(5)],
		BySubject: w.rand.IntN(2) == 0,
	}
	if w.rand.IntN(2) == 0 {
		q.Tags = append(w.tags(), uint32(w.rand.IntN(90)))
	}
	if row, ok := w.pick(); ok && w.rand.IntN(3) == 0 {
		q.Probe = row.Template
	}
	if w.rand.IntN(3) == 0 {
		row, _ := w.pick()
		q.After = &row.Subject
	}
	return q
}

// agree demands what the plain scan gives.
func (w *twin) agree(t testing.TB, q Query) {
	t.Helper()
	q.Coverage = new(scan.Coverage)
	got, err := w.Search(context.Background(), testGallery, 1, w.key, q)
	w.covered(t, q)
	want := scan.TopK(maps.Values(w.rows), w.table, q)
	if diff := difference(want, got); err != nil || len(want)+len(got) > 0 && diff != "" {
		t.Fatalf("%d rows, %+v: %v (-want +got):\n%s", len(w.rows), q, err, diff)
	}
	still, err := w.searchStill(context.Background(), testGallery, 1, w.key, &q)
	if diff := difference(got, still); err != nil || len(want) > 0 && diff != "" {
		t.Fatalf("%d rows, %+v, without writes: %v (-want +got):\n%s", len(w.rows), q, err, diff)
	}
	w.covered(t, q)
}

// difference is cmp.Diff, which takes long for what is equal.
func difference[T any](want, got T) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

// covered demands that a search by q went through all events.
func (w *twin) covered(t testing.TB, q Query) {
	t.Helper()
	leftOut := 0
	for _, row := range w.rows {
		if !scan.Tagged(row.Tags, q.Tags) {
			leftOut++
		}
	}
	if c := q.Coverage; c.Active != len(w.rows) || c.LeftOut != leftOut || c.Searched != len(w.rows)-leftOut {
		t.Fatalf("%+v: %d events, %d searched and %d left out, want %d, %d of them left out", q, c.Active, c.Searched, c.LeftOut, len(w.rows), leftOut)
	}
}

func TestShardSearchEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		w := newTwin(t, seed, []int{1, 7, 16, 64, 192}[seed%5], 2000)
		steps := []int{30, 300, 900}[seed%3]
		for step := range steps {
			w.write(t)
			if w.rand.IntN(1+step/20) == 0 {
				w.agree(t, w.query())
			}
		}
		for range 40 {
			w.agree(t, w.query())
		}
		w.Close()
	}
}

func FuzzSearchAgrees(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint16(200))
	f.Add(uint64(2), uint8(128), uint16(10))
	f.Fuzz(func(t *testing.T, seed uint64, dim uint8, steps uint16) {
		w := newTwin(t, seed, 1+int(dim), 600)
		for range steps % 500 {
			w.write(t)
		}
		for range 10 {
			w.agree(t, w.query())
		}
		w.Close()
	})
}

func TestNonFiniteTemplateIsRefused(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		s, key := newTestShard(t, 10), testKey(t, 1)
		e := put(t, s, newEvent(key, 1, axis(1)))
		if _, err := s.Hold(newEvent(key, 2, axis(2)), FreeSlots); err != nil {
			t.Fatal(err)
		}
		bad := axis(3)
		bad[5] = float32(x)
		q := Query{Probe: bad, Limit: 1}
		_, active := search(s, key, bad)
		_, pending := s.SearchPending(t.Context(), testGallery, 1, key, q)
		_, _, best := s.Best(testGallery, key, e.Subject, Query{Probe: bad})
		for name, err := range map[string]error{"search": active, "search of what is pending": pending, "best": best} {
			if !errors.Is(err, ErrQuery) {
				t.Errorf("%s for %v: got %v, want ErrQuery", name, x, err)
			}
		}
		put(t, s, newEvent(key, 4, bad))
		if _, err := search(s, key, axis(1)); !errors.Is(err, kernel.ErrTemplate) {
			t.Errorf("template with %v: got %v, want ErrTemplate", x, err)
		}
	}
}

func TestScanHitsAreUpdated(t *testing.T) {
	t.Parallel()
	hit := func(n, score int) Hit {
		return Hit{Subject: id.Subject{UUID: id.UUID{byte(n / 10)}}, Event: id.Event{UUID: id.UUID{byte(n)}}, Score: score}
	}
	all := func(Hit) bool { return true }
	but := func(n int) func(Hit) bool { return func(h Hit) bool { return h.Event != hit(n, 0).Event } }
	f := func(name string, q Query, hits, came []Hit, there func(Hit) bool, want []Hit, wantOK bool) {
		t.Helper()
		got, ok := settled(hits, came, &q, there)
		if diff := difference(want, got); ok != wantOK || ok && diff != "" {
			t.Errorf("%s: ok %v, want %v (-want +got):\n%s", name, ok, wantOK, diff)
		}
	}
	two := []Hit{hit(1, 80), hit(2, 70)}
	f("one more", Query{Limit: 3}, two, []Hit{hit(3, 75)}, all, []Hit{hit(1, 80), hit(3, 75), hit(2, 70)}, true)
	f("one more than fits", Query{Limit: 2}, two, []Hit{hit(3, 75)}, all, []Hit{hit(1, 80), hit(3, 75)}, true)
	f("seen already", Query{Limit: 2}, two, []Hit{hit(2, 70)}, all, two, true)
	f("not wanted", Query{Limit: 2}, two, []Hit{hit(3, -1)}, all, two, true)
	f("one went, there was room", Query{Limit: 3}, two, nil, but(1), []Hit{hit(2, 70)}, true)
	f("one went of a full list", Query{Limit: 2}, two, nil, but(1), nil, false)
	f("one went of one a subject", Query{Limit: 9, BySubject: true}, two, nil, but(1), nil, false)
	f("updated to worse, there was room", Query{Limit: 3}, two, []Hit{hit(1, 60)}, all, []Hit{hit(2, 70), hit(1, 60)}, true)
	f("updated to worse in a full list", Query{Limit: 2}, two, []Hit{hit(1, 60)}, all, nil, false)
	f("updated to better", Query{Limit: 2}, two, []Hit{hit(2, 90)}, all, []Hit{hit(2, 90), hit(1, 80)}, true)
	f("updated to what is not wanted", Query{Limit: 3}, two, []Hit{hit(1, -1)}, all, []Hit{hit(2, 70)}, true)
	f("better of the same subject", Query{Limit: 2, BySubject: true}, []Hit{hit(11, 80), hit(21, 70)}, []Hit{hit(12, 85)}, all,
		[]Hit{hit(12, 85), hit(21, 70)}, true)
	f("worse of the same subject", Query{Limit: 2, BySubject: true}, []Hit{hit(11, 80), hit(21, 70)}, []Hit{hit(12, 75)}, all,
		[]Hit{hit(11, 80), hit(21, 70)}, true)
}

// Beside the searches, each person in turn gets another template, first by an update
// and then by a new event before the old one is removed. At every moment each person
// is enrolled, so that every search must find all of them, and nobody else.
func TestSearchNeverMissesEnrolledSubject(t *testing.T) {
	t.Parallel()
	const persons = 8
	s, key := newTestShard(t, 4000), testKey(t, 1)
	for n := range 1500 { // who makes the scans longer
		put(t, s, newEvent(key, 10_000+n, axis(0)))
	}
	var now [persons]Event
	for n := range now {
		now[n] = put(t, s, newEvent(key, n, axis(1)))
	}
	q := Query{Probe: axis(1), Threshold: score.Max, Limit: persons + 1, BySubject: true}
	full := q
	full.Limit = persons
	var done atomic.Bool
	var searches atomic.Int64
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			for !done.Load() {
				hits, err := s.Search(t.Context(), testGallery, 1, key, []Query{q, full}[i%2])
				if err != nil || len(hits) != persons {
					t.Errorf("%d hits, %v, want %d", len(hits), err, persons)
					return
				}
				searches.Add(1)
			}
		})
	}
	made := 100
	for round := 0; round < 300 || searches.Load() < 200 && round < 30_000; round++ {
		made++
		n, v := round%persons, axis(1)
		v[2] = 1e-3 * float32(round%5)
		if round%2 == 0 {
			of, _ := s.Events(testGallery, 1, now[n].Subject)
			r := replacement(key, now[n], 20_000, v)
			r.Revision = of[0].Revision + 1
			r.Sealed = SealFace(key, FaceRef{testGallery, 1, r.Subject, r.Event, r.Revision}, engine.Face{Template: v})
			update(t, s, r)
			continue
		}
		e := further(key, now[n], 100+made, v)
		e.Time = 20_000
		must.Do(t, s.Add(e, OldestDeleted))
		must.Do(t, s.Remove(Removal{testGallery, 1, e.Subject, now[n].Event, 20_000, Heir{}}))
		now[n] = e
	}
	done.Store(true)
	wg.Wait()
}

// interrupted is a context whose first question whether it has ended is answered when
// between has run.
type interrupted struct {
	context.Context
	once    *sync.Once
	between func()
}

func (c interrupted) Err() error {
	c.once.Do(c.between)
	return c.Context.Err()
}

func TestSearchDuringUpdateFindsSubject(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 10), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	q := Query{Probe: axis(1), Threshold: score.Max, Limit: 5, BySubject: true}
	if hits, err := s.Search(t.Context(), testGallery, 1, key, q); err != nil || len(hits) != 1 {
		t.Fatalf("%d hits, %v, want 1", len(hits), err)
	}
	put(t, s, newEvent(key, 2, axis(2))) // to be opened: the search asks its context before it scans
	written := make(chan struct{})
	ctx := interrupted{t.Context(), new(sync.Once), func() {
		s.mu.Lock()
		sl, err := s.state.slice(testGallery, 1)
		if err != nil {
			t.Error(err)
		}
		old := sl.find(e.Subject, e.Event)
		sl.templates.leave(old.row) // the old template is gone, the new one is not there
		go func() {
			defer close(written)
			defer s.mu.Unlock()
			time.Sleep(50 * time.Millisecond) // the scan ends meanwhile
			s.state.replace(sl, old, replacement(key, e, 3, axis(1)))
		}()
	}}
	hits, err := s.Search(ctx, testGallery, 1, key, q)
	<-written
	if err != nil || len(hits) != 1 || hits[0].Subject != e.Subject {
		t.Errorf("hits %v, %v, want the person's", hits, err)
	}
}
