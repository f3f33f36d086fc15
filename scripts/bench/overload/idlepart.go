package overload

import (
	"context"
	"fmt"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	idleDelayGoal = 1.25 // × of the p50 without them
	idleKBGoal    = 64   // of memory for a connection
)

// idlePart opens many connections that send no request.
func (b *bench) idlePart(_ context.Context) error {
	before, err := b.alone(20*time.Millisecond, b.phase/3)
	if err != nil {
		return err
	}
	rest, err := machine.Resident(b.node.PIDs()...)
	if err != nil {
		return err
	}
	c := &crowd{client: b.client}
	defer c.leave()
	var beside machine.Sample
	var dialling time.Duration
	w, err := b.watch(func() error {
		began := time.Now()
		c.join(b.idle, func(*https.Connection) error { return nil })
		dialling = time.Since(began)
		var err error
		beside, err = b.alone(20*time.Millisecond, b.phase/2)
		return err
	})
	if err != nil {
		return err
	}
	alive := c.alive()
	return table.Print(b.out, fmt.Sprintf("%d idle connections, opened in %.1f s", b.idle, dialling.Seconds()), []table.Row{
		{What: "a search at a time, p50 beside / without", Value: beside.MS(.5) / before.MS(.5), Unit: "×", Goal: idleDelayGoal, Most: true, About: beside.Times() + "; without " + before.Times()},
		{What: "memory for each", Value: (w.MostMB - rest) * 1e3 / float64(max(1, len(c.open))), Unit: "KB", Goal: idleKBGoal, Most: true, About: fmt.Sprintf("%.0f MB before, %.0f MB at most", rest, w.MostMB)},
		{What: "connections open in the end", Value: float64(alive), Unit: "", About: fmt.Sprintf("%d could not be made %s", len(c.errs), firstOf(c.errs))},
	})
}
