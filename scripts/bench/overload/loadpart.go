//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"facet/scripts/bench/table"
)

const (
	overloadFactor = 10
	goodputGoal    = .8
	refusalMsGoal  = 250 // p99
	memoryGoal     = 1.5 // × of what the node has at its best throughput
	restTime       = 5 * time.Second
)

// bestRate finds the rate at which the node serves most. Its first requests warm it up.
func bestRate(o options, b *bench) (best float64, err error) {
	closed(b.client, b.search, 2, o.phase/5)
	for _, atOnce := range []int{2, 4, 8} {
		t := closed(b.client, b.search, atOnce, o.phase/3)
		if len(t.good) != t.sum() {
			return 0, fmt.Errorf("%d at once: %d of %d served, others %v, %w", atOnce, len(t.good), t.sum(), t.others, t.firstBad)
		}
		best = max(best, t.rate())
	}
	return best, nil
}

// loadPart offers ten times the best throughput.
func loadPart(ctx context.Context, o options, b *bench) error {
	before, err := lone(b.client, b.search, 20*time.Millisecond, o.phase/5)
	if err != nil {
		return err
	}
	var t *tally
	w, err := b.node.while(func() error {
		t = open(ctx, b.client, b.search, overloadFactor*b.best, o.phase)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	time.Sleep(restTime)
	after, err := lone(b.client, b.search, 20*time.Millisecond, o.phase/5)
	if err != nil {
		return err
	}
	again := closed(b.client, b.search, 4, o.phase/3)
	rest, err := resident(b.node.pid())
	if err != nil {
		return err
	}
	// The machine may be faster at one time than at another, so it is asked on both sides.
	best := (b.best + again.rate()) / 2
	strange := t.sum() - len(t.good) - len(t.refused)
	offered := float64(t.sum()) / t.elapsed.Seconds()
	return table.Print(o.out, fmt.Sprintf("Overload: %.0f searches a second offered for %v, open loop", offered, o.phase), []table.Row{
		{What: "offered / best throughput", Value: offered / b.best, Unit: "×", About: fmt.Sprintf("%d found no connection free and were not sent; %d new connections", t.unsent, t.dials)},
		{What: "served / best throughput (before and after)", Value: t.rate() / best, Unit: "×", Goal: goodputGoal, About: fmt.Sprintf("%.1f a second; %s", t.rate(), t.good.times())},
		{What: "refused, p99", Value: t.refused.ms(.99), Unit: "ms", Goal: refusalMsGoal, Most: true, About: t.refused.times()},
		{What: "answered otherwise", Value: float64(strange), Unit: "", Goal: .5, Most: true, About: fmt.Sprint(t.others, t.firstBad)},
		{What: "memory, most / at best", Value: w.mostMB / b.rssMB, Unit: "×", Goal: memoryGoal, Most: true, About: fmt.Sprintf("%.0f MB; %.0f MB afterwards", w.mostMB, rest)},
		{What: "alone afterwards / before, p50", Value: after.ms(.5) / before.ms(.5), Unit: "×", Goal: 1.1, Most: true, About: fmt.Sprintf("%.1f and %.1f ms", after.ms(.5), before.ms(.5))},
		{What: "throughput afterwards / before", Value: again.rate() / b.best, Unit: "×", Goal: .9, About: fmt.Sprintf("%.1f a second", again.rate())},
		{What: "processor time of the node", Value: w.cpu.Seconds() / w.elapsed.Seconds(), Unit: "cores"},
	})
}
