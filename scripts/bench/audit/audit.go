package audit

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

// The goals are for strict records of searches by photo.
const (
	rateGoal  = .95 // of the searches a second without a log
	delayGoal = 2   // ms more for a lone search, p50

	size = 1000 // of the gallery
	// settle is how long a mode needs to reach every node.
	settle = time.Second
)

// bench is one run.
type bench struct {
	shape  cluster.Shape
	rounds int
	phase  time.Duration
	atOnce int
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	b := bench{shape: cluster.Shape{Nodes: 3, Shards: 4}}
	flags.StringVar(&b.shape.Dir, "dir", "", "folder for the cluster, which stays; none: a temporary one")
	flags.IntVar(&b.rounds, "rounds", 5, "turns of the three modes")
	flags.DurationVar(&b.phase, "phase", 4*time.Second, "time for each load of a turn")
	flags.IntVar(&b.atOnce, "at-once", 8, "how many requests are under way in the measurement of throughput")
	return b.run
}

// requests are of one kind. sources has a pool of connections for each node.
type requests struct {
	name    string
	o       https.Operation
	sources []*load.Source
}

// cost has the times of one kind of request in one mode.
type cost struct {
	lone    machine.Sample
	served  int
	elapsed time.Duration
}

func (c *cost) rate() float64 { return float64(c.served) / c.elapsed.Seconds() }

// measured has the costs by mode, of each kind of request.
type measured map[string][]*cost

var modes = []string{metafsm.AuditOff.String(), metafsm.AuditBestEffort.String(), metafsm.AuditStrict.String()}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	c, err := files.Start(ctx, b.shape)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	kinds, err := b.prepare(files, c)
	if err != nil {
		return err
	}
	all := measured{}
	for _, mode := range modes {
		for range kinds {
			all[mode] = append(all[mode], new(cost))
		}
	}
	for range b.rounds {
		for _, mode := range modes {
			if err := set(ctx, c, mode); err != nil {
				return err
			}
			for i := range kinds {
				if err := b.measure(ctx, &kinds[i], all[mode][i]); err != nil {
					return fmt.Errorf("%s, audit %s: %w", kinds[i].name, mode, err)
				}
			}
		}
	}
	for i, k := range kinds {
		if err := b.print(out, k.name, i, all); err != nil {
			return err
		}
	}
	return nil
}

// prepare enrols the photo and returns the kinds of requests: searches by photo come first.
func (b *bench) prepare(files cluster.Files, c *cluster.Cluster) ([]requests, error) {
	photo, err := files.Portrait()
	if err != nil {
		return nil, err
	}
	client, err := https.New(c.Info())
	if err == nil {
		err = client.Found("bench", size)
	}
	if err != nil {
		return nil, err
	}
	if _, err = client.Post(client.URL, "/v1.1/subjects", map[string]any{"face": base64.StdEncoding.EncodeToString(photo)}); err != nil {
		return nil, err
	}
	search, err := https.NewSearch(photo)
	if err != nil {
		return nil, err
	}
	unknown, err := https.NewOperation("/v1.1/face/verify", map[string]any{"id": "none"})
	if err != nil {
		return nil, err
	}
	var sources []*load.Source
	for _, url := range c.Info().BaseURLs {
		sources = append(sources, load.NewSource(client, url))
	}
	return []requests{{"Searches by photo", search, sources}, {"Requests that are refused after their signature", unknown, sources}}, nil
}

// set sets the mode of all tenants.
func set(ctx context.Context, c *cluster.Cluster, mode string) error {
	tenants, err := c.Admin().Tenants(ctx)
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if _, err := c.Admin().SetTenant(ctx, wire.SetTenant{Name: t.Name, Audit: &wire.Audit{Mode: mode}}); err != nil {
			return err
		}
	}
	time.Sleep(settle)
	return nil
}

// measure adds a turn to a cost.
func (b *bench) measure(ctx context.Context, k *requests, to *cost) error {
	do := func(worker, i int) error {
		a, _, err := k.sources[(worker+i)%len(k.sources)].Do(k.o)
		if err == nil && a.Status >= http.StatusInternalServerError {
			err = fmt.Errorf("answered %d %s", a.Status, a.Body)
		}
		return err
	}
	if _, err := load.Closed(ctx, b.atOnce, b.phase/4, do); err != nil { // connections, queues
		return err
	}
	lone, err := load.Closed(ctx, 1, b.phase, do)
	if err != nil {
		return err
	}
	many, err := load.Closed(ctx, b.atOnce, b.phase, do)
	to.lone = append(to.lone, lone.Times...)
	to.served += len(many.Times)
	to.elapsed += many.Elapsed
	return err
}

// print prints what a kind of request costs in each mode.
func (b *bench) print(out io.Writer, name string, i int, all measured) error {
	without := all[modes[0]][i]
	rows := []table.Row{{
		What: "off", Value: without.rate(), Unit: "a second", About: "one at a time: " + without.lone.Times(),
	}}
	for _, mode := range modes[1:] {
		c := all[mode][i]
		rate := table.Row{What: mode + " / off, " + fmt.Sprint(b.atOnce) + " at once", Value: c.rate() / without.rate(), Unit: "×", About: fmt.Sprintf("%.0f a second", c.rate())}
		delay := table.Row{What: mode + " − off, one at a time, p50", Value: c.lone.MS(.5) - without.lone.MS(.5), Unit: "ms", About: c.lone.Times()}
		if i == 0 && mode == metafsm.AuditStrict.String() {
			rate.Goal, delay.Goal, delay.Most = rateGoal, delayGoal, true
		}
		rows = append(rows, rate, delay)
	}
	return table.Print(out, fmt.Sprintf("%s, %d nodes on %s", name, b.shape.Nodes, machine.Processor()), rows)
}
