package overload

import (
	"context"
	"fmt"
	"time"

	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	overloadFactor = 10
	goodputGoal    = .8
	refusalMsGoal  = 250 // p99
	memoryGoal     = 1.5 // × of what the node has at its best throughput
	restTime       = 5 * time.Second
)

// bestRate returns the highest rate at which the node served. Its first requests warm
// the node up.
func (b *bench) bestRate(ctx context.Context) (best float64, err error) {
	b.source.Closed(ctx, b.search, 2, b.phase/5)
	for _, atOnce := range []int{2, 4, 8} {
		t := b.source.Closed(ctx, b.search, atOnce, b.phase/3)
		if err := t.AllServed(); err != nil {
			return 0, fmt.Errorf("%d at once: %w", atOnce, err)
		}
		best = max(best, t.Rate())
	}
	return best, nil
}

// loadPart offers ten times the best rate.
func (b *bench) loadPart(ctx context.Context) error {
	before, err := b.alone(20*time.Millisecond, b.phase/5)
	if err != nil {
		return err
	}
	t := new(load.Tally)
	w, err := b.watch(func() error {
		b.flood(ctx, t, overloadFactor*b.best, b.phase)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if len(t.Refused) == 0 {
		return fmt.Errorf("of %d searches none was refused: that was no overload", t.Sum())
	}
	time.Sleep(restTime)
	after, err := b.alone(20*time.Millisecond, b.phase/5)
	if err != nil {
		return err
	}
	again := b.source.Closed(ctx, b.search, 4, b.phase/3)
	rest, err := machine.Resident(b.node.PIDs()...)
	if err != nil {
		return err
	}
	// The machine's speed may change during a run, so the best rate is measured before
	// and after.
	best := (b.best + again.Rate()) / 2
	strange := t.Sum() - len(t.Good) - len(t.Refused)
	offered := float64(t.Sum()) / t.Elapsed.Seconds()
	return table.Print(b.out, fmt.Sprintf("Overload: %.0f searches a second offered for %v, open loop", offered, b.phase), []table.Row{
		{What: "offered / best throughput", Value: offered / b.best, Unit: "×", About: fmt.Sprintf("%d found no connection free and were not sent; %d new connections", t.Unsent, t.Dials)},
		{What: "served / best throughput (before and after)", Value: t.Rate() / best, Unit: "×", Goal: goodputGoal, About: fmt.Sprintf("%.1f a second; %s", t.Rate(), t.Good.Times())},
		{What: "refused, p99", Value: t.Refused.MS(.99), Unit: "ms", Goal: refusalMsGoal, Most: true, About: t.Refused.Times()},
		{What: "answered otherwise", Value: float64(strange), Unit: "", Goal: .5, Most: true, About: fmt.Sprint(t.Others, t.FirstBad)},
		{What: "memory, most / at best", Value: w.MostMB / b.rssMB, Unit: "×", Goal: memoryGoal, Most: true, About: fmt.Sprintf("%.0f MB; %.0f MB afterwards", w.MostMB, rest)},
		{What: "alone afterwards / before, p50", Value: after.MS(.5) / before.MS(.5), Unit: "×", Goal: 1.1, Most: true, About: fmt.Sprintf("%.1f and %.1f ms", after.MS(.5), before.MS(.5))},
		{What: "throughput afterwards / before", Value: again.Rate() / b.best, Unit: "×", Goal: .9, About: fmt.Sprintf("%.1f a second", again.Rate())},
		{What: "processor time of the node", Value: w.CPU.Seconds() / w.Elapsed.Seconds(), Unit: "cores"},
	})
}
