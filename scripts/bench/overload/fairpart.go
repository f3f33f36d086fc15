//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"facet/scripts/bench/table"
)

const (
	fairGoal      = .45 // of what is served meanwhile; half is the share of one of two
	fairDelayGoal = 4   // × of the time alone
)

// fairPart floods the node as one tenant and works as another.
func fairPart(ctx context.Context, o options, b *bench) error {
	keys, err := b.node.admin.CreateTenant(ctx, "second")
	if err != nil {
		return fmt.Errorf("create a second tenant: %w", err)
	}
	second, err := newClient(b.node, keys.AccessKey, keys.SecretKey)
	if err != nil {
		return err
	}
	before, err := lone(second, b.search, 50*time.Millisecond, o.phase/3)
	if err != nil {
		return err
	}
	var flood, busy *tally
	var beside sample
	var work sync.WaitGroup
	flood = new(tally)
	work.Go(func() { flood.open(ctx, b.client, b.search, overloadFactor*b.best, 3*o.phase/2) })
	time.Sleep(o.phase / 10) // until the queue is full
	beside, err = lone(second, b.search, 50*time.Millisecond, o.phase/2)
	served := flood.served()
	if err == nil {
		busy = closed(second, b.search, 4, o.phase/2)
		served = flood.served() - served
	}
	work.Wait()
	if err != nil {
		return fmt.Errorf("beside a flood: %w", err)
	}
	return table.Print(o.out, fmt.Sprintf("Another tenant beside such a flood (%.0f a second offered, %.1f served)",
		float64(flood.sum())/flood.elapsed.Seconds(), flood.rate()), []table.Row{
		{What: "one search at a time, p50 beside / alone", Value: beside.ms(.5) / before.ms(.5), Unit: "×", Goal: fairDelayGoal, Most: true, About: "alone " + before.times()},
		{What: "p99 beside / alone", Value: beside.ms(.99) / before.ms(.99), Unit: "×", About: "beside " + beside.times() + "; none refused"},
		{What: "four at once: its part of all that is served", Value: float64(len(busy.good)) / float64(len(busy.good)+served), Goal: fairGoal, About: fmt.Sprintf("%.1f a second, beside %.1f of the flood's; %s", busy.rate(), float64(served)/busy.elapsed.Seconds(), busy.good.times())},
		{What: "its refusals", Value: float64(busy.sum() - len(busy.good)), Unit: "", Goal: .5, Most: true, About: fmt.Sprint(busy.others)},
	})
}
