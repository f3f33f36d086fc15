package load

import (
	"context"
	"sync"
	"time"

	"facet/scripts/bench/machine"
)

// Result has the times of a load.
type Result struct {
	Times   machine.Sample
	Elapsed time.Duration
}

// Rate returns the number of calls per second.
func (r *Result) Rate() float64 { return float64(len(r.Times)) / r.Elapsed.Seconds() }

// Each returns the share of one call in a sum of processor time, in ms.
func (r *Result) Each(sum time.Duration) float64 {
	return sum.Seconds() * 1e3 / float64(max(len(r.Times), 1))
}

// Closed runs n workers that each call do again and again for the time d. do gets the
// worker's number and the number of its earlier calls. The first error ends all
// workers.
func Closed(ctx context.Context, n int, d time.Duration, do func(worker, i int) error) (r Result, err error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	began := time.Now()
	for w := range n {
		workers.Go(func() {
			var times machine.Sample
			for i := 0; ctx.Err() == nil; i++ {
				if failure := times.Time(func() error { return do(w, i) }); failure != nil {
					mu.Lock()
					err = failure
					mu.Unlock()
					cancel()
					return
				}
			}
			mu.Lock()
			r.Times = append(r.Times, times...)
			mu.Unlock()
		})
	}
	workers.Wait()
	r.Elapsed = time.Since(began)
	return r, err
}
