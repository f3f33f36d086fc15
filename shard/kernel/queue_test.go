package kernel

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/shard/scan"
)

func TestWaitingSearchesGetOwnHits(t *testing.T) {
	t.Parallel()
	const dim, searches = 32, 200
	r := rand.New(rand.NewPCG(1, 10))
	w := newTwin(t, dim)
	w.fill(t, r, 4000)
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
	w.fill(t, rand.New(rand.NewPCG(3, 11)), 3000)
	queue := NewQueue(w.m, w.table, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := scan.Query{Probe: make([]float32, 8), Limit: 1}
	for queue.running = range 2 { // the second waits for a pass that lasts
		if _, err := queue.Search(ctx, q); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v beside %d passes", err, queue.running)
		}
	}
	if n := len(queue.waiting); n != 0 {
		t.Errorf("%d searches wait", n)
	}
	queue.waiting = make([]*ticket, waitingMax)
	if _, err := queue.Search(t.Context(), q); !errors.Is(err, ErrBusy) {
		t.Errorf("got error %v, want ErrBusy", err)
	}
}

// Searches that nobody waits for stand aside while others run, but not for ever.
func TestPassOfItsOwnStandsAside(t *testing.T) {
	t.Parallel()
	const dim = 32
	r := rand.New(rand.NewPCG(1, 11))
	w := newTwin(t, dim)
	w.fill(t, r, 4000)
	queries := make([]scan.Query, batchMax)
	for i := range queries {
		queries[i] = randomQuery(r, unit(r, dim))
	}
	synctest.Test(t, func(t *testing.T) {
		queue := NewQueue(w.m, w.table, 1)
		for _, busy := range []time.Duration{0, asideMost / 2, 2 * asideMost} {
			if busy > 0 {
				queue.running = 1
				time.AfterFunc(busy, func() {
					queue.mu.Lock()
					defer queue.mu.Unlock()
					queue.running = 0
				})
			}
			begin := time.Now()
			lists, err := queue.SearchAll(t.Context(), queries)
			if took, want := time.Since(begin), min(busy, asideMost); err != nil || took < want || took > want+asideStep {
				t.Errorf("waited %v beside searches of %v, error %v", took, busy, err)
			}
			for i, q := range queries {
				if want := scan.TopK(maps.Values(w.rows), w.table, q); !slices.Equal(lists[i], want) {
					t.Errorf("%+v:\ngot  %v\nwant %v", q, lists[i], want)
				}
			}
			time.Sleep(3 * asideMost)
		}
	})
}
