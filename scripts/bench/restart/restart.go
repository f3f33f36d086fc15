package restart

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"facet/engine/models"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	// eventsMax is the most templates. They take about 25 GB of memory and of disk.
	eventsMax = 25_000_000
	// limitMax is the most candidates of a search. They have to include one of each
	// shard.
	limitMax      = 50
	searchTimeout = 5 * time.Minute
	goal          = 10 // seconds, for up to goalEvents templates
	goalEvents    = 1_000_000
	ratioGoal     = 1.5
	// codesQuiet is how long no further file of codes came when all are there.
	codesQuiet = 6 * time.Second
)

// bench is one run.
type bench struct {
	events, rounds int
	cold, encode   bool
	shape          cluster.Shape

	files   cluster.Files
	out     io.Writer
	photo   []byte
	gallery cluster.Gallery
	has     files
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	b := bench{shape: cluster.Shape{Nodes: 1}}
	flags.IntVar(&b.events, "events", 1_000_000, "templates")
	flags.IntVar(&b.rounds, "rounds", 3, "restarts")
	flags.StringVar(&b.shape.Dir, "dir", "", "folder for the cluster, which stays and is used again; none: a temporary one")
	flags.BoolVar(&b.cold, "cold", false, "drop the system's file cache before each restart (as root)")
	flags.BoolVar(&b.encode, "encode", false, "remove the codes before each restart, so that the node encodes all templates")
	flags.IntVar(&b.shape.Memory, "memory", 0, "MiB, the node's setting; default: three quarters of the machine's")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	if b.events < 1 || b.events > eventsMax || b.rounds < 1 {
		return fmt.Errorf("1 to %d templates, 1 round or more", eventsMax)
	}
	b.files, b.out = files, out
	if b.shape.Dir == "" {
		if b.shape.Dir, err = os.MkdirTemp("", "bench-restart"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.shape.Dir)) }()
	}
	if b.photo, err = files.Portrait(); err != nil {
		return err
	}
	pack, err := models.Read(files.Pack())
	if err != nil {
		return err
	}
	begin := time.Now()
	if b.gallery, err = files.Prepare(ctx, b.shape, b.events, b.photo, pack.Manifest.Spectrum()); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d templates in %d shards, through their groups' logs: %.0f s\n", b.events, len(b.gallery.Filled.Shards), time.Since(begin).Seconds())
	if !b.encode {
		if err := b.keepCodes(ctx); err != nil {
			return err
		}
	}
	return b.measure(ctx)
}

// keepCodes runs the node until it has written the codes of all large segments.
func (b *bench) keepCodes(ctx context.Context) (err error) {
	s := b.shape
	c, err := b.files.Start(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	begin := time.Now()
	for before := -1; ; {
		has, err := find(b.shape.Dir)
		if err != nil {
			return err
		}
		if n := len(has.codes); n > 0 && n == before {
			fmt.Fprintf(b.out, "codes: %d files, %.0f MB beside %.0f MB of segments, in %.0f s\n", n, float64(has.coded)/1e6, float64(has.bytes)/1e6, time.Since(begin).Seconds())
			return nil
		}
		before = len(has.codes)
		select {
		case <-time.After(codesQuiet):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// prepare finds what the next restart reads.
func (b *bench) prepare() (err error) {
	if b.has, err = find(b.shape.Dir); err != nil {
		return err
	}
	if !b.encode {
		return b.has.findClear()
	}
	for _, name := range b.has.codes {
		err = errors.Join(err, os.Remove(name))
	}
	b.has.codes = nil
	return err
}

// measure measures restarts and their limits in turn, and prints medians.
func (b *bench) measure(ctx context.Context) error {
	var ready, worked, searched, read, opened, touched machine.Sample
	var resident float64 // MB
	for range b.rounds {
		if err := b.prepare(); err != nil {
			return err
		}
		least, err := b.limits()
		if err != nil {
			return err
		}
		read, opened, touched = append(read, least.read), append(opened, least.decrypt), append(touched, least.touch)
		r, err := b.restart(ctx)
		if err != nil {
			return err
		}
		ready, worked, searched, resident = append(ready, r.ready), append(worked, r.worked), append(searched, r.searched), r.resident
	}
	row := func(name string, list machine.Sample) table.Row {
		return table.Row{What: name, Value: list.MS(.5) / 1e3, Unit: "s", About: fmt.Sprintf("%.2f … %.2f", list.MS(0)/1e3, list.MS(1)/1e3)}
	}
	last := row("a search over every template has been answered", searched)
	if b.events <= goalEvents {
		last.Goal, last.Most = goal, true
	}
	limit := (read.MS(.5) + opened.MS(.5) + touched.MS(.5)) / 1e3
	first := row("ready, by /readyz: all templates are open", ready)
	ratio := table.Row{What: "ready / what is needed at least", Value: first.Value / limit, Unit: "×"}
	read1, open1 := "at least: read the segments", "at least: decrypt the faces"
	if len(b.has.codes) > 0 {
		ratio.Goal, ratio.Most = ratioGoal, true
		read1, open1 = "at least: read the records and codes", "at least: decrypt the codes"
	}
	title := fmt.Sprintf("%d templates in %.0f MB of segments and %.0f MB of codes, one core, %d restarts: medians",
		b.events, float64(b.has.bytes)/1e6, float64(b.has.coded)/1e6, b.rounds)
	err := table.Print(b.out, title, []table.Row{
		first,
		row("processor time until then", worked),
		last,
		row(read1, read),
		row(open1, opened),
		row("at least: touch that much new memory", touched),
		ratio,
		{What: "search after, each template", Value: last.Value * 1e6 / float64(b.events), Unit: "µs"},
		{What: "resident", Value: resident / 1e3, Unit: "GB", About: fmt.Sprintf("%.0f bytes a template", resident*1e6/float64(b.events))},
	})
	if err == nil && last.Goal > 0 && last.Value > goal {
		return fmt.Errorf("the goal is %d s", goal)
	}
	return err
}

// limits measures the unavoidable parts of a restart, with a cold cache if b.cold is
// set.
func (b *bench) limits() (l limits, err error) {
	if b.cold {
		if err := dropCache(); err != nil {
			return l, err
		}
	}
	if l, err = b.has.measure(b.events); err == nil && b.cold {
		err = dropCache()
	}
	return l, err
}

// restarted is the result of one restart.
type restarted struct {
	ready, searched time.Duration
	worked          time.Duration // processor time until ready
	resident        float64       // MB
}

// restart starts the node on the last core and searches until a search compares all
// templates.
func (b *bench) restart(ctx context.Context) (r restarted, err error) {
	s := b.shape
	s.Pinned, s.Core = true, runtime.NumCPU()-1
	begin := time.Now()
	c, err := b.files.Start(ctx, s)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r.ready = time.Since(begin)
	if r.worked, err = machine.CPU(c.PIDs()...); err != nil {
		return r, err
	}
	client, err := https.New(c.Info())
	if err != nil {
		return r, err
	}
	client.APIKey = b.gallery.APIKey
	search, err := https.NewOperation(https.SearchPath, map[string]any{"probe": base64.StdEncoding.EncodeToString(b.photo), "limit": limitMax})
	if err != nil {
		return r, err
	}
	for {
		text, err := client.Send(client.URL, search)
		if err == nil {
			r.searched = time.Since(begin)
			if err := b.gallery.Check(text); err != nil {
				return r, err
			}
			break
		}
		if _, refused := errors.AsType[*https.StatusError](err); !refused || time.Since(begin) > searchTimeout {
			return r, err
		}
	}
	r.resident, err = machine.Resident(c.PIDs()...)
	return r, err
}
