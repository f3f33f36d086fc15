package overload

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
)

// The cores of the clients and of the node.
const (
	clientCore = 0
	nodeCore   = 1
)

// bench is one run.
type bench struct {
	parts      string
	phase      time.Duration
	idle, slow int

	files  cluster.Files
	out    io.Writer
	node   *cluster.Cluster
	client *https.Client
	source *load.Source
	search https.Operation
	best   float64 // searches a second
	rssMB  float64 // of the node after its first searches
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	var b bench
	flags.StringVar(&b.parts, "parts", "load,fair,quota,garbage,idle,slow", "what to measure")
	flags.DurationVar(&b.phase, "phase", 10*time.Second, "time for each load")
	flags.IntVar(&b.idle, "idle", 10_000, "idle connections")
	flags.IntVar(&b.slow, "slow", 400, "slow clients of each kind")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	b.files, b.out = files, out
	if b.node, err = files.Start(ctx, cluster.Shape{Nodes: 1, Pinned: true, Core: nodeCore}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.node.Close()) }()
	if b.client, err = https.New(b.node.Info()); err != nil {
		return err
	}
	b.source = load.NewSource(b.client, b.client.URL)
	defer b.source.Close()
	photo, err := files.Portrait()
	if err != nil {
		return err
	}
	if b.search, err = https.NewSearch(photo); err != nil {
		return err
	}
	// The gallery stays empty, so searches find nobody.
	if err := b.client.Found("bench", 1_000_000); err != nil {
		return err
	}
	if b.best, err = b.bestRate(ctx); err != nil {
		return err
	}
	if b.rssMB, err = machine.Resident(b.node.PIDs()...); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s; node on core %d, clients on core %d; searches with a photo of %d KB, %d KB of JSON\n",
		machine.Processor(), nodeCore, clientCore, len(photo)>>10, len(b.search.Body)>>10)
	fmt.Fprintf(out, "best throughput: %.1f searches a second; the node has %.0f MB then\n", b.best, b.rssMB)
	chosen := strings.Split(b.parts, ",")
	for _, p := range []struct {
		name string
		run  func(context.Context) error
	}{{"load", b.loadPart}, {"fair", b.fairPart}, {"quota", b.quotaPart}, {"garbage", b.garbagePart}, {"idle", b.idlePart}, {"slow", b.slowPart}} {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// Pin keeps the clients on their core.
func Pin() error { return machine.StayOn(clientCore) }

// tenant creates a tenant with a gallery and returns its client.
func (b *bench) tenant(ctx context.Context, name string) (*https.Client, error) {
	keys, err := b.node.Admin().CreateTenant(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("create tenant %s: %w", name, err)
	}
	c, err := https.New(b.node.Info())
	if err != nil {
		return nil, err
	}
	c.Signer.AccessKey, c.Signer.SecretKey = keys.AccessKey, keys.SecretKey
	return c, c.Found("bench", 1000)
}

// alone makes one search at a time and returns their times.
func (b *bench) alone(pause, d time.Duration) (machine.Sample, error) {
	return load.Alone(b.client, b.client.URL, b.search, pause, d)
}

// flood offers searches at a rate, whether the node serves them or not.
func (b *bench) flood(ctx context.Context, t *load.Tally, rate float64, d time.Duration) {
	b.floodBy(ctx, b.client, t, rate, d)
}

// floodBy is flood with the searches of a client.
func (b *bench) floodBy(ctx context.Context, c *https.Client, t *load.Tally, rate float64, d time.Duration) {
	s := load.NewSource(c, c.URL)
	defer s.Close()
	s.Open(ctx, t, b.search, load.Even(rate, d))
}

// watch calls do and returns the time and memory that the node takes meanwhile.
func (b *bench) watch(do func() error) (machine.Usage, error) {
	return machine.Watch(do, b.node.PIDs()...)
}
