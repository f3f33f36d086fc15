package kernel

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"facet/shard/scan"
)

func TestWaitingSearchesGetOwnHits(t *testing.T) {
	t.Parallel()
	const dim, searches = 32, 200
	r := rand.New(rand.NewPCG(1, 10))
	w := newTwin(t, dim)
	for i := range 4000 {
		w.add(t, eventOf(r, i), unit(r, dim))
	}
	queue := NewQueue(w.m, w.table, 1)
	var wg sync.WaitGroup
	for range searches {
		q := randomQuery(r, unit(r, dim))
		wg.Go(func() {
			got, err := queue.Search(t.Context(), q)
			if want := scan.TopK(maps.Values(w.rows), w.table, q); err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v:\ngot  %v, error %v\nwant %v", q, got, err, want)
			}
		})
	}
	wg.Wait()
	if queue.running != 0 || len(queue.waiting) != 0 {
		t.Errorf("%d passes and %d searches are left", queue.running, len(queue.waiting))
	}
}

func TestAbandonedSearchLeavesQueue(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 8)
	queue := NewQueue(w.m, w.table, 1)
	queue.running = 1 // a pass that lasts
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := scan.Query{Probe: make([]float32, 8), Limit: 1}
	if _, err := queue.Search(ctx, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if n := len(queue.waiting); n != 0 {
		t.Errorf("%d searches wait", n)
	}
	queue.waiting = make([]*ticket, waitingMax)
	if _, err := queue.Search(t.Context(), q); !errors.Is(err, ErrBusy) {
		t.Errorf("got error %v, want ErrBusy", err)
	}
}
