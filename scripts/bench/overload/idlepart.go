//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"facet/scripts/bench/table"
)

const (
	idleDelayGoal = 1.25 // × of the p50 without them
	idleKBGoal    = 64   // of memory for a connection
)

// idlePart opens many connections that ask for nothing.
func idlePart(_ context.Context, o options, b *bench) error {
	before, err := lone(b.client, b.search, 20*time.Millisecond, o.phase/3)
	if err != nil {
		return err
	}
	rest, err := resident(b.node.pid())
	if err != nil {
		return err
	}
	c := &crowd{client: b.client}
	defer c.leave()
	var beside sample
	var dialling time.Duration
	w, err := b.node.while(func() error {
		began := time.Now()
		c.join(o.idle, func(int, *connection) error { return nil })
		dialling = time.Since(began)
		var err error
		beside, err = lone(b.client, b.search, 20*time.Millisecond, o.phase/2)
		return err
	})
	if err != nil {
		return err
	}
	alive := c.alive()
	return table.Print(o.out, fmt.Sprintf("%d idle connections, opened in %.1f s", o.idle, dialling.Seconds()), []table.Row{
		{What: "a search at a time, p50 beside / without", Value: beside.ms(.5) / before.ms(.5), Unit: "×", Goal: idleDelayGoal, Most: true, About: beside.times() + "; without " + before.times()},
		{What: "memory for each", Value: (w.mostMB - rest) * 1e3 / float64(max(1, len(c.open))), Unit: "KB", Goal: idleKBGoal, Most: true, About: fmt.Sprintf("%.0f MB before, %.0f MB at most", rest, w.mostMB)},
		{What: "connections open in the end", Value: float64(alive), Unit: "", About: fmt.Sprintf("%d could not be made %s", len(c.errs), firstOf(c.errs))},
	})
}
