package shard

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/seal"
)

const testDim = 16

// testArena is shared, as it is in a node.
var testArena = kernel.NewArena(0)

var testGallery = id.Gallery{UUID: id.UUID{1}}

func newTestShard(t testing.TB, slots uint32) *Shard {
	t.Helper()
	table, err := score.NewTable([]score.Point{
		{Cosine: -1}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max},
	})
	must.Do(t, err)
	s := New(table, testArena)
	must.Do(t, s.Grant(Grant{testGallery, 1, slots}))
	return s
}

func testKey(t testing.TB, fill byte) *seal.Key {
	t.Helper()
	k, err := seal.NewKey(bytes.Repeat([]byte{fill}, seal.KeyBytes))
	must.Do(t, err)
	return k
}

// axis is the unit vector along axis n.
func axis(n int) engine.Template {
	v := make(engine.Template, testDim)
	v[n%testDim] = 1
	return v
}

func newEvent(key *seal.Key, n int, template engine.Template) Event {
	e := Event{
		Gallery: testGallery, Generation: 1, Time: int64(n),
		Subject: id.Subject{UUID: id.UUID{2, byte(n >> 8), byte(n)}},
		Event:   id.Event{UUID: id.UUID{3, byte(n >> 8), byte(n)}},
	}
	e.Sealed = SealFace(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, engine.Face{Template: template})
	return e
}

func put(t testing.TB, s *Shard, e Event) Event {
	t.Helper()
	if err := s.Put(e, FreeSlots); err != nil {
		t.Fatalf("put event %s: %v", e.Event, err)
	}
	return e
}

func search(s *Shard, key *seal.Key, probe engine.Template) ([]Hit, error) {
	return s.Search(context.Background(), testGallery, 1, key, Query{Probe: probe, Threshold: 9000, Limit: 10})
}

func TestSearchFindsEarlierPuts(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 100), testKey(t, 1)
	for n := range testDim {
		e := put(t, s, newEvent(key, n, axis(n)))
		hits, err := search(s, key, axis(n))
		if want := []Hit{{Subject: e.Subject, Event: e.Event, Score: score.Max}}; err != nil || !slices.Equal(hits, want) {
			t.Fatalf("search %d: got %v, %v, want %v", n, hits, err, want)
		}
		best, ok, err := s.Best(testGallery, key, e.Subject, Query{Probe: axis(n)})
		if best != score.Max || !ok || err != nil {
			t.Fatalf("best of subject %d: got %d, %v, %v", n, best, ok, err)
		}
	}
}

// A slice large enough is opened on all processors.
func TestFirstSearchOpensLargeSlice(t *testing.T) {
	t.Parallel()
	const n = 2*openBatch + 3
	s, key := newTestShard(t, n), testKey(t, 1)
	for i := range n {
		put(t, s, newEvent(key, i, axis(2)))
	}
	hits, err := s.Search(context.Background(), testGallery, 1, key, Query{Probe: axis(2), Threshold: score.Max, Limit: 2 * n})
	if err != nil || len(hits) != n {
		t.Errorf("%d hits, %v, want %d", len(hits), err, n)
	}
}

func TestBestOpensOwnTemplatesOnly(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 100), testKey(t, 1)
	good := put(t, s, newEvent(key, 1, axis(1)))
	bad := put(t, s, newEvent(testKey(t, 2), 2, axis(2)))
	if best, ok, err := s.Best(testGallery, key, good.Subject, Query{Probe: axis(1)}); best != score.Max || !ok || err != nil {
		t.Errorf("readable subject: got %d, %v, %v", best, ok, err)
	}
	if _, _, err := s.Best(testGallery, key, bad.Subject, Query{Probe: axis(1)}); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("unreadable subject: got %v, want seal.ErrOpen", err)
	}
	if _, ok, err := s.Best(testGallery, key, id.Subject{}, Query{Probe: axis(1)}); ok || err != nil {
		t.Errorf("unknown subject: got %v, %v", ok, err)
	}
	if _, ok, err := s.Best(id.Gallery{}, key, good.Subject, Query{Probe: axis(1)}); ok || err != nil {
		t.Errorf("unknown gallery: got %v, %v", ok, err)
	}
}

// Every search fails until the row that can't be opened is gone.
func TestUnreadableRowFailsSearches(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	f := func(name string, wrong func(*Event), want error) {
		t.Helper()
		s := newTestShard(t, 100)
		put(t, s, newEvent(key, 1, axis(1)))
		e := newEvent(key, 2, axis(2))
		wrong(&e)
		put(t, s, e)
		put(t, s, newEvent(key, 3, axis(1)))
		for range 2 {
			if hits, err := search(s, key, axis(1)); !errors.Is(err, want) || hits != nil {
				t.Errorf("%s: got %v, %v, want %v", name, hits, err, want)
			}
		}
		must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, 9}))
		if hits, err := search(s, key, axis(1)); len(hits) != 2 || err != nil {
			t.Errorf("%s, erased: got %v, %v", name, hits, err)
		}
	}
	f("changed bytes", func(e *Event) { e.Sealed[40] ^= 1 }, seal.ErrOpen)
	f("another event's face", func(e *Event) { e.Event.UUID[0]++ }, seal.ErrOpen)
	f("another subject's face", func(e *Event) { e.Subject.UUID[0]++ }, seal.ErrOpen)
	f("no face", func(e *Event) { e.Sealed = nil }, ErrFace)
	f("a later form", func(e *Event) { e.Sealed[0]++ }, ErrFace)
	f("another key", func(e *Event) { *e = newEvent(testKey(t, 2), 2, axis(2)) }, seal.ErrOpen)
}

// inMemory returns the memory of an active event's open template.
func inMemory(t *testing.T, s *Shard, e Event) []float32 {
	t.Helper()
	sl := s.state.slices[e.Gallery]
	at := sl.find(e.Subject, e.Event)
	if at.none() || at.Place < 0 {
		t.Fatalf("the template of event %s is not open: the test can't see it", e.Event)
	}
	template, ok := sl.templates.matrix.At(int(at.Place))
	if !ok {
		t.Fatalf("the exact row of event %s is not in memory", e.Event)
	}
	return template
}

func TestEraseZeroesTemplate(t *testing.T) {
	t.Parallel()
	const n = 1000 // several chunks
	s, key := newTestShard(t, 3000), testKey(t, 1)
	planted := engine.Template{.125, -.25, .5, .0625, 15: .75}
	for n := range n {
		put(t, s, newEvent(key, n, axis(n)))
	}
	e := put(t, s, newEvent(key, n, planted))
	if _, err := search(s, key, planted); err != nil {
		t.Fatal(err)
	}
	memory := inMemory(t, s, e)
	if !slices.Equal(memory, planted) {
		t.Fatalf("the planted template is %v in memory", memory)
	}
	must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, 9000}))
	if !slices.Equal(memory, make([]float32, testDim)) {
		t.Errorf("%v of the erased template is still in memory", memory)
	}
	if sealed, ok := s.Sealed(testGallery, e.Subject, e.Event, 0); ok {
		t.Errorf("the sealed face of an erased event is given: %d bytes", len(sealed))
	}
	p := s.ListEvents(testGallery, n, 1, Ascending)
	if want := []Entry{{e.Subject, e.Event, true, 9000}}; !slices.Equal(p.Entries, want) || p.Total != n+1 {
		t.Errorf("list: got %v of %d, want %v", p.Entries, p.Total, want)
	}
}

// Fence, Replace and Close also free the memory.
func TestDroppedSliceZeroesTemplates(t *testing.T) {
	t.Parallel()
	key := testKey(t, 1)
	f := func(name string, drop func(*Shard)) {
		t.Helper()
		s := newTestShard(t, 10)
		s.arena = kernel.NewArena(0)
		e := put(t, s, newEvent(key, 1, axis(1)))
		if _, err := search(s, key, axis(1)); err != nil {
			t.Fatal(err)
		}
		memory := inMemory(t, s, e)
		if memory[1] != 1 || s.arena.Used() == 0 {
			t.Fatalf("%s: the template is %v, %d bytes in use", name, memory, s.arena.Used())
		}
		drop(s)
		if !slices.Equal(memory, make([]float32, testDim)) || s.arena.Used() != 0 {
			t.Errorf("%s: the template is %v, %d bytes in use", name, memory, s.arena.Used())
		}
		if err := s.arena.Close(); err != nil {
			t.Error(err)
		}
	}
	f("restore", func(s *Shard) { s.Replace(newLoader(nil)) })
	f("fence", func(s *Shard) { s.Fence(testGallery, 2) })
	f("close", func(s *Shard) { s.Close() })
}

func TestWaitingTemplatesAreBounded(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2), testKey(t, 1)
	for n := range 500 {
		e := newEvent(key, n, axis(n))
		must.Do(t, s.Put(e, OldestDeleted))
		must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, int64(n)}))
	}
	if n := len(s.state.slices[testGallery].templates.waiting); n > 0 {
		t.Errorf("%d templates wait after 500 events that are gone", n)
	}
}

func TestReusedRowHoldsNewTemplate(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 4), testKey(t, 1)
	r := rand.New(rand.NewPCG(5, 1))
	var active []Event
	templates := map[id.Event]engine.Template{}
	for n := range 300 {
		template := axis(r.IntN(testDim))
		if e := newEvent(key, n, template); s.Put(e, OldestDeleted) == nil {
			active = append(active, e)
			templates[e.Event] = template
		}
		if len(active) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(active))
			must.Do(t, s.Erase(Erasure{testGallery, 1, active[i].Subject, int64(n)}))
			active = slices.Delete(active, i, i+1)
		}
		if r.IntN(3) == 0 {
			continue // several changes between searches
		}
		for _, e := range active {
			hits, err := search(s, key, templates[e.Event])
			if want := (Hit{Subject: e.Subject, Event: e.Event, Score: score.Max}); err != nil || !slices.Contains(hits, want) {
				t.Fatalf("step %d: got %v, %v, want %v among them", n, hits, err, want)
			}
		}
	}
}

// The oldest deleted entry goes first.
func TestSlotsAreNeverExceeded(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2), testKey(t, 1)
	a := put(t, s, newEvent(key, 1, axis(1)))
	b := put(t, s, newEvent(key, 2, axis(2)))
	c := newEvent(key, 3, axis(3))
	for _, reuse := range []Reuse{FreeSlots, OldestDeleted} {
		if err := s.Put(c, reuse); !errors.Is(err, ErrNoSlot) {
			t.Errorf("full, reuse %d: got %v, want ErrNoSlot", reuse, err)
		}
	}
	for i, e := range []Event{b, a} {
		must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, int64(10 + i)}))
	}
	if err := s.Put(c, FreeSlots); !errors.Is(err, ErrNoSlot) {
		t.Errorf("deleted entries only, free slots wanted: got %v, want ErrNoSlot", err)
	}
	c.Time = 12
	must.Do(t, s.Put(c, OldestDeleted))
	want := []Entry{{a.Subject, a.Event, true, 11}, {c.Subject, c.Event, false, 12}}
	if got := entriesOf(s); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: b was deleted first", got, want)
	}
	u := s.Usage(testGallery)
	if u != (Usage{Granted: 2, Active: 1, Deleted: 1}) || u.Free() != 0 {
		t.Errorf("usage %+v", u)
	}
}

func TestOtherGenerationIsRefused(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2), testKey(t, 1)
	e := newEvent(key, 1, axis(1))
	e.Generation = 2
	_, searched := s.Search(context.Background(), testGallery, 2, key, Query{Probe: axis(1), Limit: 1})
	for name, err := range map[string]error{
		"grant": s.Grant(Grant{testGallery, 2, 5}), "put": s.Put(e, FreeSlots), "check": s.Check(testGallery, 2),
		"erase": s.Erase(Erasure{testGallery, 2, e.Subject, 1}), "search": searched,
	} {
		if !errors.Is(err, ErrGeneration) {
			t.Errorf("%s: got %v, want ErrGeneration", name, err)
		}
	}
}

func TestUnfitQueryIsRefused(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	_, noLimit := s.Search(context.Background(), testGallery, 1, key, Query{Probe: axis(1)})
	_, short := search(s, key, axis(1)[:8])
	_, _, best := s.Best(testGallery, key, e.Subject, Query{Probe: axis(1)[:8]})
	for name, err := range map[string]error{"no limit": noLimit, "short probe": short, "short probe of best": best} {
		if !errors.Is(err, ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
}

func TestDescendingReversesPages(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 50), testKey(t, 1)
	for n := range 30 {
		e := newEvent(key, n, axis(n))
		e.Time = int64(n / 3) // equal times
		put(t, s, e)
	}
	all := s.ListEvents(testGallery, 0, 100, Ascending)
	if all.Total != 30 || len(all.Entries) != 30 {
		t.Fatalf("%d entries of %d", len(all.Entries), all.Total)
	}
	reversed := slices.Clone(all.Entries)
	slices.Reverse(reversed)
	for order, want := range map[Order][]Entry{Ascending: all.Entries, Descending: reversed} {
		for n := 1; n < 35; n++ {
			var got []Entry
			for offset := 0; offset < 40; offset += n {
				got = append(got, s.ListEvents(testGallery, offset, n, order).Entries...)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("order %d, pages of %d: got %v, want %v", order, n, got, want)
			}
		}
	}
	for time, want := range map[int64]int{-1: 0, 0: 0, 1: 3, 5: 15, 9: 27, 10: 30, 99: 30} {
		if got := s.CountBefore(testGallery, time); got != want {
			t.Errorf("entries before %d: got %d, want %d", time, got, want)
		}
	}
}

func TestReadsBesideWritesSeeWholeStates(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 64), testKey(t, 1)
	keep := put(t, s, newEvent(key, 999, axis(0)))
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				hits, err := search(s, key, axis(0))
				if err != nil || !slices.Contains(hits, Hit{Subject: keep.Subject, Event: keep.Event, Score: score.Max}) {
					t.Errorf("search: got %v, %v", hits, err)
					return
				}
				if best, ok, err := s.Best(testGallery, key, keep.Subject, Query{Probe: axis(0)}); best != score.Max || !ok || err != nil {
					t.Errorf("best: got %d, %v, %v", best, ok, err)
				}
				if u := s.Usage(testGallery); u.Active+u.Deleted > u.Granted {
					t.Errorf("usage %+v", u)
				}
				s.ListEvents(testGallery, i, 10, Descending)
				s.Stats()
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 2))
	var active []Event
	for n := range 600 {
		if e := newEvent(key, n, axis(1+n%(testDim-1))); s.Put(e, OldestDeleted) == nil {
			active = append(active, e)
		}
		if len(active) > 0 && r.IntN(2) == 0 {
			i := r.IntN(len(active))
			if err := s.Erase(Erasure{testGallery, 1, active[i].Subject, int64(n)}); err != nil {
				t.Error(err)
			}
			active = slices.Delete(active, i, i+1)
		}
		if n%50 == 0 {
			s.Freeze()
		}
	}
	close(done)
	wg.Wait()
	if _, err := search(s, key, axis(0)); err != nil {
		t.Error(err)
	}
	if got := s.Stats(); got.Active != len(active)+1 || got.Granted != 64 || got.TemplateBytes < int64(4*testDim*len(active)) {
		t.Errorf("stats %+v with %d active", got, len(active)+1)
	}
}
