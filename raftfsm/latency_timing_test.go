package raftfsm

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkPropose measures a command of 2 KiB on three members over loopback, one
// caller and 64, and ReadIndex beside it. The disk's fsync is most of it.
func BenchmarkPropose(b *testing.B) {
	c := newCluster(b, nil, nil)
	c.found(names(3)...)
	c.propose("x")
	g := c.leader()
	measure := func(name string, callers int, call func() error) {
		b.Run(name, func(b *testing.B) {
			var mu sync.Mutex
			var took []time.Duration
			work := make(chan struct{})
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range work {
						start := time.Now()
						if err := call(); err != nil {
							b.Error(err)
						}
						mu.Lock()
						took = append(took, time.Since(start))
						mu.Unlock()
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			wg.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
	cmd := make([]byte, 2<<10)
	propose := func() error { _, err := g.Propose(context.Background(), cmd); return err }
	read := func() error { _, err := g.ReadIndex(context.Background()); return err }
	measure("propose-1", 1, propose)
	measure("propose-64", 64, propose)
	measure("readindex-1", 1, read)
	measure("readindex-64", 64, read)
}
