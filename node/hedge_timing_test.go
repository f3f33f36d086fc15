package node_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	hedgeWatch = 15 * time.Second
	// hedgeSettle is the time for other members to lead what a stopped node led.
	hedgeSettle = 4 * time.Second
	// hedgePause is the time between two searches of a client. The slow node stands still for slowStops of
	// every slowEvery.
	hedgePause           = 5 * time.Millisecond
	hedgeClients         = 4
	slowStops, slowEvery = 60 * time.Millisecond, 200 * time.Millisecond
)

// searches searches at the first two nodes for hedgeWatch. It returns the times in order.
func (f *fleet) searches(b *testing.B) (times []time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), hedgeWatch)
	defer cancel()
	var mu sync.Mutex
	var work sync.WaitGroup
	for n := range hedgeClients {
		work.Go(func() {
			base := f.cluster.Nodes[n%2].URL
			for ctx.Err() == nil {
				time.Sleep(hedgePause)
				began := time.Now()
				if a := f.client.Call(b, base, http.MethodPost, "/v1.1/face/search", probe("probe")); a.Status != http.StatusOK {
					b.Errorf("search: %d %s", a.Status, a.Body)
				}
				mu.Lock()
				times = append(times, time.Since(began))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	slices.Sort(times)
	return times
}

// hedges returns how many reads the first two nodes have hedged.
func (f *fleet) hedges(b *testing.B) (all float64) {
	for _, m := range f.cluster.Nodes[:2] {
		samples, _ := ask(m, "/metrics")
		all += samplesIn(b, samples)["facet_read_hedges_total"]
	}
	return all
}

// stutter stops and continues a node until ctx ends.
func (f *fleet) stutter(ctx context.Context, i int) {
	for ctx.Err() == nil {
		_ = f.procs[i].Process.Signal(syscall.SIGSTOP)
		time.Sleep(slowStops)
		_ = f.procs[i].Process.Signal(syscall.SIGCONT)
		time.Sleep(slowEvery - slowStops)
	}
}

// BenchmarkHedges searches at two of three nodes, each a process of its own, while the third one is well,
// stopped by SIGSTOP, or slow: it stands still for 60 of each 200 ms. A search asks four shards. The ms are
// those of searches, above-ms is by how much the p99 is higher than with three healthy nodes, and extra-%
// is the share of hedges in the shards' reads.
//
// Goals: above-ms of silent ≤ 50, extra-% ≤ 5. Cores that are busy with other work raise the usual time.
func BenchmarkHedges(b *testing.B) {
	f := newFleet(b)
	for b.Loop() {
		f.leads()
		time.Sleep(hedgeSettle)
		f.searches(b) // what is usual
		healthy := 0.
		for _, kind := range []string{"healthy", "silent", "slow"} {
			ctx, cancel := context.WithCancel(b.Context())
			var work sync.WaitGroup
			switch kind {
			case "silent":
				_ = f.procs[2].Process.Signal(syscall.SIGSTOP)
				time.Sleep(hedgeSettle)
			case "slow":
				_ = f.procs[2].Process.Signal(syscall.SIGCONT)
				f.leads()
				time.Sleep(hedgeSettle)
				work.Go(func() { f.stutter(ctx, 2) })
			}
			before := f.hedges(b)
			times := f.searches(b)
			cancel()
			work.Wait()
			extra := 100 * (f.hedges(b) - before) / float64(failoverShards*len(times))
			at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000 }
			if kind == "healthy" {
				healthy = at(.99)
			}
			b.Logf("%-8s %6d searches: p50 %5.1f, p99 %6.1f, max %6.1f ms, above-ms %.1f, extra-%% %.2f", kind, len(times), at(.5), at(.99), at(1), at(.99)-healthy, extra)
			b.ReportMetric(at(.99)/healthy, kind+"-p99-ratio")
			b.ReportMetric(extra, kind+"-extra-%")
		}
	}
	b.ReportMetric(0, "ns/op")
}
