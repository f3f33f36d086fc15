//go:build linux

// Command bench-overload offers a node ten times the load that it can serve, with the
// node on one core and the clients on another, and prints what became of it: how much
// was served and how the rest was refused, what it cost another tenant, what idle, slow
// and forged connections do to others, and what memory it took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	assets, facet string
	phase         time.Duration
	idle          int
	slow          int
	profile       string
	out           io.Writer
}

// parts are what a run may measure, in order.
var parts = []struct {
	name string
	run  func(context.Context, options, *bench) error
}{
	{"load", loadPart}, {"fair", fairPart}, {"garbage", garbagePart}, {"idle", idlePart}, {"slow", slowPart},
}

func main() {
	o := options{out: os.Stdout}
	chosen := flag.String("parts", "load,fair,garbage,idle,slow", "what to measure")
	flag.StringVar(&o.assets, "assets", "assets", "folder that make setup fills")
	flag.StringVar(&o.facet, "facet", "bin/facet", "the program whose node is measured")
	flag.DurationVar(&o.phase, "phase", 10*time.Second, "time for each load")
	flag.IntVar(&o.idle, "idle", 10_000, "idle connections")
	flag.IntVar(&o.slow, "slow", 400, "slow clients of each kind")
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of these clients, not of the node")
	flag.Parse()
	if err := pinSelf(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-overload:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, strings.Split(*chosen, ","), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-overload:", err)
		os.Exit(1)
	}
}

// bench is what the parts share.
type bench struct {
	node   *node
	client *client
	search operation
	best   float64 // searches a second, from loadPart
	rssMB  float64 // of the node at rest, after its first searches
}

func run(ctx context.Context, chosen []string, o options) (err error) {
	n, err := startNode(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	b := &bench{node: n}
	if b.client, err = newClient(n, n.info.AccessKey, n.info.SecretKey); err != nil {
		return err
	}
	if b.search, err = newSearch(o.assets); err != nil {
		return err
	}
	if b.best, err = bestRate(o, b); err != nil {
		return err
	}
	if b.rssMB, err = resident(n.pid()); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%s; node on core %d, clients on core %d; searches with a photo of %d KB, %d KB of JSON\n",
		processor(), nodeCore, clientCore, b.search.photoBytes>>10, len(b.search.body)>>10)
	fmt.Fprintf(o.out, "best throughput: %.1f searches a second; the node has %.0f MB then\n", b.best, b.rssMB)
	for _, p := range parts {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		if err := p.run(ctx, o, b); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
