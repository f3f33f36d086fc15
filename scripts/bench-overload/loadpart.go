package main

import (
	"context"
	"fmt"
	"time"
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
	return printTable(o.out, fmt.Sprintf("Overload: %.0f searches a second offered for %v, open loop", offered, o.phase), []row{
		{what: "offered / best throughput", value: offered / b.best, unit: "×", about: fmt.Sprintf("%d found no connection free and were not sent; %d new connections", t.unsent, t.dials)},
		{what: "served / best throughput (before and after)", value: t.rate() / best, unit: "×", goal: goodputGoal, about: fmt.Sprintf("%.1f a second; %s", t.rate(), t.good.times())},
		{what: "refused, p99", value: t.refused.ms(.99), unit: "ms", goal: refusalMsGoal, most: true, about: t.refused.times()},
		{what: "answered otherwise", value: float64(strange), unit: "", goal: .5, most: true, about: fmt.Sprint(t.others, t.firstBad)},
		{what: "memory, most / at best", value: w.mostMB / b.rssMB, unit: "×", goal: memoryGoal, most: true, about: fmt.Sprintf("%.0f MB; %.0f MB afterwards", w.mostMB, rest)},
		{what: "alone afterwards / before, p50", value: after.ms(.5) / before.ms(.5), unit: "×", goal: 1.1, most: true, about: fmt.Sprintf("%.1f and %.1f ms", after.ms(.5), before.ms(.5))},
		{what: "throughput afterwards / before", value: again.rate() / b.best, unit: "×", goal: .9, about: fmt.Sprintf("%.1f a second", again.rate())},
		{what: "processor time of the node", value: w.cpu.Seconds() / w.elapsed.Seconds(), unit: "cores"},
	})
}
