package shard

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
	"facet/shard/seal"
)

// besideTimeout is far more than what has to happen beside a search takes.
const besideTimeout = 20 * time.Second

// paused is a context that stops a search in its scan, which asks it at every piece.
type paused struct {
	context.Context
	asked chan struct{} // takes one when the scan stands
	goOn  chan struct{} // closed to let it go on
	left  int           // pieces before it stands
}

func pause(t *testing.T, pieces int) *paused {
	return &paused{Context: t.Context(), asked: make(chan struct{}, 1), goOn: make(chan struct{}), left: pieces}
}

func (p *paused) Err() error {
	if p.left--; p.left == 0 {
		p.asked <- struct{}{}
		<-p.goOn
	}
	return p.Context.Err()
}

// searching runs a search and gives its outcome.
func searching(ctx context.Context, s *Shard, g id.Gallery, key *seal.Key, q Query) chan searched {
	out := make(chan searched, 1)
	go func() {
		hits, err := s.Search(ctx, g, 1, key, q)
		out <- searched{hits, err}
	}()
	return out
}

type searched struct {
	hits []Hit
	err  error
}

func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case x := <-from:
		return x
	case <-time.After(besideTimeout):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

// Writes are not held off while a search scans, and the search finds what they changed.
func TestWritesDuringScanAreNotMissed(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		w := newTwin(t, uint64(round), 16, 9000)
		for range 1500 {
			w.write(t)
		}
		q := w.query()
		w.agree(t, q) // opens all
		p := pause(t, 1+round%6)
		counted := q
		counted.Coverage = new(scan.Coverage)
		result := searching(p, w.Shard, testGallery, w.key, counted)
		receive(t, p.asked, "a scan that stands")
		for range 1 + w.rand.IntN(60) {
			w.write(t)
		}
		close(p.goOn)
		got := receive(t, result, "the answer")
		want, err := w.Search(t.Context(), testGallery, 1, w.key, q)
		w.agree(t, q)
		w.covered(t, counted)
		if got.err != nil || err != nil || !slices.Equal(got.hits, want) {
			t.Fatalf("round %d, %+v: %v\ngot  %v\nwant %v", round, q, got.err, got.hits, want)
		}
	}
}

func TestHangingSearchBlocksNothing(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 2000), testKey(t, 1)
	first := put(t, s, newEvent(key, 0, axis(1)))
	for n := range 1000 {
		put(t, s, newEvent(key, 1+n, axis(2)))
	}
	small := id.Gallery{UUID: id.UUID{5}}
	must.Do(t, s.Grant(Grant{small, 1, 10}))
	if _, err := search(s, key, axis(1)); err != nil {
		t.Fatal(err)
	}
	// All passes that the large gallery may have stand, and more searches wait for one.
	q := Query{Probe: axis(1), Threshold: 9000, Limit: 10}
	var stand []*paused
	var results []chan searched
	for range runtime.GOMAXPROCS(0) {
		p := pause(t, 3)
		stand = append(stand, p)
		results = append(results, searching(p, s, testGallery, key, q))
		receive(t, p.asked, "a scan that stands")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	waits := searching(cancelled, s, testGallery, key, q)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e := newEvent(key, 5000, axis(3))
		e.Gallery = small
		e.Sealed = SealFace(key, FaceRef{small, 1, e.Subject, e.Event, 0}, engine.Face{Template: axis(3)})
		if err := s.Put(e, FreeSlots); err != nil {
			t.Error(err)
		}
		hits, err := s.Search(t.Context(), small, 1, key, Query{Probe: axis(3), Threshold: 9000, Limit: 1})
		if want := []Hit{{Subject: e.Subject, Event: e.Event, Score: score.Max}}; err != nil || !slices.Equal(hits, want) {
			t.Errorf("the small gallery: got %v, %v, want %v", hits, err, want)
		}
		if err := s.Erase(Erasure{testGallery, 1, first.Subject, 9000}); err != nil {
			t.Error(err)
		}
		s.Freeze()
		s.ListEvents(testGallery, 0, 10, Ascending)
		if _, ok, err := s.Best(testGallery, key, first.Subject, Query{Probe: axis(1)}); ok || err != nil {
			t.Errorf("an erased subject is compared with: %v, %v", ok, err)
		}
	}()
	receive(t, done, "what happens beside the searches")
	cancel()
	if r := receive(t, waits, "a search that was given up"); !errors.Is(r.err, context.Canceled) {
		t.Errorf("a search that was given up: %v, %v", r.hits, r.err)
	}
	for i, p := range stand {
		close(p.goOn)
		if r := receive(t, results[i], "an answer"); r.err != nil || len(r.hits) != 0 {
			t.Errorf("search %d: %v, %v: the only hit was erased before its end", i, r.hits, r.err)
		}
	}
}

func TestCancelledSearchStopsOpening(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 5000), testKey(t, 1)
	for n := range 5000 {
		put(t, s, newEvent(key, n, axis(n)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Search(ctx, testGallery, 1, key, Query{Probe: axis(1), Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("search: got %v, want canceled", err)
	}
	if err := s.Warm(ctx, testGallery, 1, key); !errors.Is(err, context.Canceled) {
		t.Errorf("warm: got %v, want canceled", err)
	}
	if cold := s.Cold(); len(cold) != 1 || cold[0].Templates < 4000 {
		t.Errorf("after that %v is cold, want nearly all of 5000", cold)
	}
}

func TestWarmedSearchOpensNothing(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 500), testKey(t, 1)
	for n := range 300 {
		put(t, s, newEvent(key, n, axis(n)))
	}
	if got := s.Cold(); !slices.Equal(got, []Cold{{testGallery, 1, 300}}) {
		t.Errorf("cold before: %v", got)
	}
	if err := s.Warm(t.Context(), testGallery, 1, testKey(t, 2)); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("another key: got %v, want seal.ErrOpen", err)
	}
	must.Do(t, s.Warm(t.Context(), testGallery, 1, key))
	if err := s.Warm(t.Context(), id.Gallery{}, 1, key); err != nil {
		t.Errorf("no slice: %v", err)
	}
	if err := s.Warm(t.Context(), testGallery, 2, key); !errors.Is(err, ErrGeneration) {
		t.Errorf("another generation: %v", err)
	}
	if got := s.Cold(); len(got) > 0 {
		t.Errorf("cold after: %v", got)
	}
	if hits, err := search(s, testKey(t, 2), axis(3)); err != nil || len(hits) != 10 {
		t.Errorf("a search with no key that opens: %v, %v", hits, err)
	}
}

// Later searches are refused.
func TestCloseWaitsForSearches(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 500), testKey(t, 1)
	e := put(t, s, newEvent(key, 1, axis(1)))
	p := pause(t, 1)
	result := searching(p, s, testGallery, key, Query{Probe: axis(1), Limit: 1})
	receive(t, p.asked, "the scan")
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	for !s.isClosed() {
		runtime.Gosched()
	}
	select {
	case <-closed:
		t.Error("Close did not wait for the search")
	default:
	}
	if _, err := search(s, key, axis(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("a search after Close: %v", err)
	}
	close(p.goOn)
	if r := receive(t, result, "the answer"); r.err != nil || len(r.hits) != 1 || r.hits[0].Event != e.Event {
		t.Errorf("the search under way: %v, %v", r.hits, r.err)
	}
	receive(t, closed, "the end of Close")
	s.Close()
	if _, _, err := s.Best(testGallery, key, e.Subject, Query{Probe: axis(1)}); !errors.Is(err, ErrClosed) {
		t.Errorf("best after Close: %v", err)
	}
	if err := s.Erase(Erasure{testGallery, 1, e.Subject, 9}); err != nil {
		t.Errorf("a command that was applied after Close: %v", err)
	}
}

func (s *Shard) isClosed() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.closed
}

// The first template after the last one went decides the dimension.
func TestEmptiedSliceTakesOtherDimension(t *testing.T) {
	t.Parallel()
	s, key := newTestShard(t, 500), testKey(t, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for n, dim := range []int{16, 8, 16, 64} {
		v := make([]float32, dim)
		v[r.IntN(dim)] = 1
		e := put(t, s, newEvent(key, n, v))
		hits, err := search(s, key, v)
		if want := []Hit{{Subject: e.Subject, Event: e.Event, Score: score.Max}}; err != nil || !slices.Equal(hits, want) {
			t.Fatalf("%d numbers: got %v, %v, want %v", dim, hits, err, want)
		}
		must.Do(t, s.Erase(Erasure{testGallery, 1, e.Subject, 99}))
	}
}
