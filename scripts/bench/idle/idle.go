package idle

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"facet/scripts/bench/cluster"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	nodes = 3
	// goal is the most processor time that the nodes may take together, in percent of one core.
	goal = 5
	// pairs is the number of ordered pairs of nodes. beat is how often each must exchange a
	// heartbeat: a fifth of a follower's patience.
	pairs = nodes * (nodes - 1)
	beat  = 300 * time.Millisecond
)

// bench is one run.
type bench struct {
	shape        cluster.Shape
	settle, time time.Duration
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	b := bench{shape: cluster.Shape{Nodes: nodes}}
	flags.IntVar(&b.shape.Shards, "shards", 16, "shards of a new cluster")
	flags.StringVar(&b.shape.Dir, "dir", "", "folder for the cluster, which stays and is used again; none: a temporary one")
	flags.DurationVar(&b.settle, "settle", 30*time.Second, "pause before the measurement")
	flags.DurationVar(&b.time, "time", time.Minute, "time of the measurement")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) error {
	each, err := roundTrip(ctx)
	if err != nil {
		return fmt.Errorf("exchange messages over TLS: %w", err)
	}
	u, err := b.measure(ctx, files)
	if err != nil {
		return err
	}
	rest := u.CPU.Seconds() / u.Elapsed.Seconds()
	least := pairs / beat.Seconds() * each.Seconds()
	title := fmt.Sprintf("%d nodes with %d shards, at rest for %s on %s", nodes, b.shape.Shards, u.Elapsed.Round(time.Second), machine.Processor())
	return table.Print(out, title, []table.Row{
		{What: "the nodes together", Value: 100 * rest, Unit: "% of a core", Goal: goal, Most: true, About: fmt.Sprintf("%.0f MB resident", u.MostMB)},
		{What: "one heartbeat for each pair", Value: 100 * least, Unit: "% of a core", About: fmt.Sprintf("a round trip over TLS each %s: %.0f µs", beat, each.Seconds()*1e6)},
		{What: "nodes / heartbeats", Value: rest / least},
	})
}

// measure starts the nodes and returns what they take once they have settled.
func (b *bench) measure(ctx context.Context, files cluster.Files) (u machine.Usage, err error) {
	c, err := files.Start(ctx, b.shape)
	if err != nil {
		return u, err
	}
	defer func() {
		if closed := c.Close(); err == nil {
			err = closed
		}
	}()
	if err := pause(ctx, b.settle); err != nil {
		return u, err
	}
	return machine.Watch(func() error { return pause(ctx, b.time) }, c.PIDs()...)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
