package kernel

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/shard/scan"
)

func TestASearchAmongSlotsFindsNoOthersAndAllOfThose(t *testing.T) {
	t.Parallel()
	const dim, n = 33, 5000
	r := rand.New(rand.NewPCG(1, 11))
	w := newTwin(t, dim)
	for i := range n {
		w.add(t, ownerOf(r, i), unit(r, dim))
	}
	for _, one := range []int{1, 2, 40, 3000} { // of so many slots is allowed
		allow := make([]uint64, r.IntN(n/64+3))
		for i := range 64 * len(allow) {
			if r.IntN(one) == 0 {
				allow[i/64] |= 1 << (i % 64)
			}
		}
		rows := func(yield func(scan.Row) bool) {
			for slot, row := range w.rows {
				if slot/64 < len(allow) && allow[slot/64]>>(slot%64)&1 == 1 && !yield(row) {
					return
				}
			}
		}
		requests := make([]request, 16)
		for i := range requests {
			requests[i] = request{randomQuery(r, unit(r, dim)), Scope{Allow: allow}}
		}
		for _, k := range kernels() {
			searches, err := w.m.searchAll(w.table, requests, &k)
			if err != nil {
				t.Fatal(err)
			}
			for i, q := range requests {
				got, want := searches[i].top.hits(), scan.TopK(rows, w.table, q.query)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, one of %d, %d words, %+v:\ngot  %v\nwant %v", k.name, one, len(allow), q.query, got, want)
				}
			}
		}
	}
}

func TestASearchThatIsStoppedEndsWithinAPieceAndAlone(t *testing.T) {
	t.Parallel()
	const dim = 8
	r := rand.New(rand.NewPCG(2, 11))
	w := newTwin(t, dim)
	for i := range 20_000 {
		w.add(t, ownerOf(r, i), unit(r, dim))
	}
	why := errors.New("enough")
	asked := 0
	stop := func() error {
		if asked++; asked >= 13 {
			return why
		}
		return nil
	}
	q := scan.Query{Probe: unit(r, dim), Limit: 10}
	if _, err := w.m.SearchIn(w.table, q, Scope{Stop: stop}); !errors.Is(err, why) || asked != 13 {
		t.Errorf("asked %d times, then error %v", asked, err)
	}
	want, err := w.m.Search(w.table, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, stopped := range []int{1, 16} { // of a pass of sixteen
		requests := make([]request, laneCount)
		for i := range requests {
			requests[i].query = q
			if i < stopped {
				requests[i].scope.Stop = stop
			}
		}
		searches, err := w.m.searchAll(w.table, requests, &active)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range searches {
			got, err := s.result()
			if i < stopped && !errors.Is(err, why) || i >= stopped && (err != nil || !slices.Equal(got, want)) {
				t.Errorf("search %d of a pass where %d are stopped: %v, error %v", i, stopped, got, err)
			}
		}
	}
}

func TestAQueueGivesUpASearchWhoseCallerHasGone(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 11))
	w := newTwin(t, 8)
	for i := range 3000 {
		w.add(t, ownerOf(r, i), unit(r, 8))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	queue := NewQueue(w.m, w.table, 1)
	_, err := queue.Search(ctx, scan.Query{Probe: unit(r, 8), Limit: 3})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}
