package load

import (
	"context"
	"sync"
	"time"

	"facet/scripts/bench/machine"
)

// Result is what a load took.
type Result struct {
	Times   machine.Sample
	Elapsed time.Duration
}

// Rate returns how many were done a second.
func (r *Result) Rate() float64 { return float64(len(r.Times)) / r.Elapsed.Seconds() }

// Each returns the share of one in a sum of processor time, in ms.
func (r *Result) Each(sum time.Duration) float64 {
	return sum.Seconds() * 1e3 / float64(max(len(r.Times), 1))
}

// Closed has n workers that each do one thing after the other for a while. do gets the
// worker's number and how many it has done. The first error ends all.
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
