package overload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"facet/node/wire"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	quietP99Goal = 2 // × of the time alone
	// quotaSearches is the quota of a tenant that shall take half of a node with one worker.
	quotaSearches = 1
)

// quotaPart makes single searches beside another tenant's flood, first with the default
// quotas and then with a quota of searches that fits the node's one core.
func (b *bench) quotaPart(ctx context.Context) error {
	noisy, err := b.tenant(ctx, "noisy")
	if err != nil {
		return err
	}
	before, err := b.alone(50*time.Millisecond, b.phase/2)
	if err != nil {
		return err
	}
	beside := func() (s machine.Sample, t *load.Tally, err error) {
		t = new(load.Tally)
		var work sync.WaitGroup
		work.Go(func() { b.floodBy(ctx, noisy, t, overloadFactor*b.best, b.phase) })
		time.Sleep(b.phase / 10) // until the queue is full
		s, err = b.alone(50*time.Millisecond, 3*b.phase/4)
		work.Wait()
		return s, t, err
	}
	byDefault, first, err := beside()
	if err != nil {
		return fmt.Errorf("beside a flood: %w", err)
	}
	if _, err := b.node.Admin().SetTenant(ctx, wire.SetTenant{Name: "noisy", Quotas: map[string]uint64{"searches": quotaSearches}}); err != nil {
		return fmt.Errorf("set a quota: %w", err)
	}
	bounded, second, err := beside()
	if err != nil {
		return fmt.Errorf("beside a flood with a quota: %w", err)
	}
	after, err := b.alone(50*time.Millisecond, b.phase/2)
	if err != nil {
		return err
	}
	alone := (before.MS(.99) + after.MS(.99)) / 2 // the machine's speed may change during a run
	about := func(s machine.Sample, t *load.Tally) string {
		return fmt.Sprintf("%s; the flood: %.0f a second offered, %.1f served", s.Times(), float64(t.Sum())/t.Elapsed.Seconds(), t.Rate())
	}
	return table.Print(b.out, "A quiet tenant's single searches beside another tenant's flood", []table.Row{
		{What: "p99 alone, before and after", Value: alone, Unit: "ms", About: before.Times() + "; " + after.Times()},
		{What: "p99 beside / alone, default quotas", Value: byDefault.MS(.99) / alone, Unit: "×", Goal: quietP99Goal, Most: true, About: about(byDefault, first)},
		{
			What: fmt.Sprintf("p99 beside / alone, searches=%d for the flood", quotaSearches), Value: bounded.MS(.99) / alone, Unit: "×",
			Goal: quietP99Goal, Most: true, About: about(bounded, second),
		},
	})
}
