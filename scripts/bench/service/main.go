// Command bench-service measures searches through the whole service: three nodes in
// processes of their own, a gallery over several shards, signed HTTPS over kept-alive
// connections; with probes that are templates already, so that the models' time hides
// nothing, and with a photo through the real models. Beside that it measures the search
// kernel alone over the same templates with the same probes, and the models alone, and
// says where a search's time and processor time go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"facet/scripts/bench/machine"
)

type options struct {
	assets string
	dir    string
	events int
	nodes  int
	shards int
	phase  time.Duration
	atOnce []int
	out    io.Writer
}

// The bounds of a run: a million templates take about 5 GB on three nodes.
const (
	eventsMin, eventsMax = 1000, 5_000_000
	nodesMax             = 3
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand {
		if err := serveNode(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench-service node:", err)
			os.Exit(1)
		}
		return
	}
	o := options{out: os.Stdout}
	flag.StringVar(&o.assets, "assets", "assets", "folder that make setup fills")
	flag.StringVar(&o.dir, "dir", "", "folder for the cluster, which stays and is used again; none: a temporary one")
	flag.IntVar(&o.events, "events", 300_000, "templates in the gallery")
	flag.IntVar(&o.nodes, "nodes", nodesMax, "nodes of the cluster, at most 3")
	flag.IntVar(&o.shards, "shards", 4, "shards of the cluster; the gallery gets one for each 50,000 templates")
	flag.DurationVar(&o.phase, "phase", 8*time.Second, "time for each load")
	list := flag.String("at-once", "1,32", "how many searches are under way at a time")
	flag.Parse()
	for text := range strings.SplitSeq(*list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "bench-service: -at-once %q\n", *list)
			os.Exit(2)
		}
		o.atOnce = append(o.atOnce, n)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-service:", err)
		os.Exit(1) //nolint:gocritic // everything is closed
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.events < eventsMin || o.events > eventsMax || o.nodes < 1 || o.nodes > nodesMax {
		return fmt.Errorf("%d to %d templates, 1 to %d nodes", eventsMin, eventsMax, nodesMax)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "bench-service"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	began := time.Now()
	b := &bench{options: o}
	if err := b.openEngine(); err != nil {
		return err
	}
	defer b.engine.Close()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	prepared := time.Since(began)
	if err := b.openKernel(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.kernel.close()) }()
	fmt.Fprintf(o.out, "%s, %d cores, which nodes and clients share. %d templates of %d numbers in %d shards, %d nodes; prepared in %.0f s.\n",
		machine.Processor(), runtime.NumCPU(), b.kernel.rows, b.note.Filled.Dim, len(b.note.Filled.Shards), o.nodes, prepared.Seconds())
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "\nThe whole run took %.0f s.\n", time.Since(began).Seconds())
	return nil
}
