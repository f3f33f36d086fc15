package node_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/wire"
)

const (
	busyProcesses = 8
	busyFor       = 5 * time.Minute
	// busyPause is the time between two writes to one shard.
	busyPause = 50 * time.Millisecond
	// busySettle is the time for leaders to hand over to the members that the map names first.
	busySettle = 15 * time.Second
)

// leaderships returns how often a group's members became its leader, by group.
func (f *fleet) leaderships() map[string]int {
	counts := map[string]int{}
	for _, m := range f.cluster.Nodes {
		samples, _ := ask(m, wire.PathMetrics)
		for line := range strings.Lines(samples) {
			var n int
			group, count, found := strings.Cut(strings.TrimPrefix(line, `facet_group_leaderships_total{group="`), `"} `)
			if _, err := fmt.Sscan(count, &n); found && err == nil && strings.HasPrefix(line, "facet_group_leaderships_total{") {
				counts[group] += n
			}
		}
	}
	return counts
}

// BenchmarkBusy writes for five minutes to three nodes, each a process of its own, while
// eight other processes use the processors. elections is the most elections of one group
// in a round. p50, p99 and max are the times of the writes.
//
// Goals on two processors: elections ≤ 1, p99 ≤ 2 s, nothing lost.
func BenchmarkBusy(b *testing.B) {
	f := newFleet(b)
	var times []time.Duration
	var lost int64
	most := 0
	for b.Loop() {
		f.leads()
		time.Sleep(busySettle)
		before := f.leaderships()
		ctx, cancel := context.WithTimeout(context.Background(), busyFor)
		var probers []*prober
		var work sync.WaitGroup
		for range busyProcesses {
			spin := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
			must.Do(b, spin.Start())
			work.Go(func() { _ = spin.Wait() }) // killed: not a success
		}
		for shard := 1; shard <= failoverShards; shard++ {
			p := &prober{f: f, shard: shard, every: busyPause, slots: make(chan struct{}, failoverInFlight)}
			probers = append(probers, p)
			work.Go(func() { p.run(ctx) })
		}
		work.Wait()
		cancel()
		for _, p := range probers {
			lost += p.lost.Load()
			for _, a := range p.acks {
				times = append(times, a.ended.Sub(a.began))
			}
		}
		after := f.leaderships()
		for group, n := range after {
			most = max(most, n-before[group])
		}
		b.Logf("leaderships before %v, after %v", before, after)
	}
	slices.Sort(times)
	at := func(q float64) float64 { return float64(times[int(q*float64(len(times)-1))].Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(at(.5), "p50-ms")
	b.ReportMetric(at(.99), "p99-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(float64(len(times)), "writes")
	b.ReportMetric(float64(most), "elections")
	b.ReportMetric(float64(lost), "lost")
}
