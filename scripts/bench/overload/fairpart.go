package overload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"facet/scripts/bench/load"
	"facet/scripts/bench/table"
)

const (
	fairGoal      = .45 // of what is served meanwhile; half is the share of one of two
	fairDelayGoal = 4   // × of the time alone
)

// fairPart floods the node as one tenant and makes single searches as another.
func (b *bench) fairPart(ctx context.Context) error {
	second, err := b.tenant(ctx, "second")
	if err != nil {
		return err
	}
	source := load.NewSource(second, second.URL)
	defer source.Close()
	before, err := load.Alone(second, second.URL, b.search, 50*time.Millisecond, b.phase/3)
	if err != nil {
		return err
	}
	var busy *load.Tally
	var work sync.WaitGroup
	flood := new(load.Tally)
	work.Go(func() { b.flood(ctx, flood, overloadFactor*b.best, 3*b.phase/2) })
	time.Sleep(b.phase / 10) // until the queue is full
	beside, err := load.Alone(second, second.URL, b.search, 50*time.Millisecond, b.phase/2)
	served := flood.Served()
	if err == nil {
		busy = source.Closed(ctx, b.search, 4, b.phase/2)
		served = flood.Served() - served
	}
	work.Wait()
	if err != nil {
		return fmt.Errorf("beside a flood: %w", err)
	}
	return table.Print(b.out, fmt.Sprintf("Another tenant beside such a flood (%.0f a second offered, %.1f served)",
		float64(flood.Sum())/flood.Elapsed.Seconds(), flood.Rate()), []table.Row{
		{What: "one search at a time, p50 beside / alone", Value: beside.MS(.5) / before.MS(.5), Unit: "×", Goal: fairDelayGoal, Most: true, About: "alone " + before.Times()},
		{What: "p99 beside / alone", Value: beside.MS(.99) / before.MS(.99), Unit: "×", About: "beside " + beside.Times() + "; none refused"},
		{What: "four at once: its part of all that is served", Value: float64(len(busy.Good)) / float64(len(busy.Good)+served), Goal: fairGoal, About: fmt.Sprintf("%.1f a second, beside %.1f of the flood's; %s", busy.Rate(), float64(served)/busy.Elapsed.Seconds(), busy.Good.Times())},
		{What: "its refusals", Value: float64(busy.Sum() - len(busy.Good)), Unit: "", Goal: .5, Most: true, About: fmt.Sprint(busy.Others)},
	})
}
