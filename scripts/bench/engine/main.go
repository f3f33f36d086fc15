// Command bench-engine prints, from one run, what the face engine costs beside what
// it can't do without: the bare models and the bare JPEG decoder, and what a node
// costs beside the engine. Everything that is compared is measured in turn, round
// after round, and told as a median, so that a busy machine hurts both sides alike.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"facet/engine"
	"facet/engine/imaging"
	"facet/engine/models"
)

type options struct {
	assets   string
	facet    string
	rounds   int
	phase    time.Duration
	requests int
	profile  string
	procs    string
	out      io.Writer
}

func main() {
	o := options{out: os.Stdout}
	parts := flag.String("parts", "engine,node", "engine: models, decoder and pipeline; node: HTTPS; memory: the long run")
	flag.StringVar(&o.assets, "assets", "assets", "folder that make setup fills")
	flag.StringVar(&o.facet, "facet", "bin/facet", "the program whose node is measured")
	flag.IntVar(&o.rounds, "rounds", 25, "rounds of the engine's part")
	flag.DurationVar(&o.phase, "phase", 6*time.Second, "time for each load of the node's part")
	flag.IntVar(&o.requests, "requests", 100_000, "requests of the long run")
	flag.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the engine's part")
	flag.StringVar(&o.procs, "procs", "", "values of GOMAXPROCS to compare, one node each; none: as a node chooses")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *parts, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-engine:", err)
		os.Exit(1)
	}
}

// burnPart is the part of the process that a burner is.
const burnPart = "burn"

func run(ctx context.Context, parts string, o options) error {
	if parts == burnPart {
		return serveBurns(ctx, o.out)
	}
	pack, err := models.Open(filepath.Join(o.assets, "packs", "default"))
	if err != nil {
		return err
	}
	e, err := engine.New(pack, engine.Config{Library: filepath.Join(o.assets, "lib", "libonnxruntime.so")})
	if err != nil {
		return err
	}
	defer e.Close()
	fmt.Fprintf(o.out, "%s, %d cores, %s/%s, %s; JPEG by %s; pack %s\n", processor(), runtime.GOMAXPROCS(0),
		runtime.GOOS, runtime.GOARCH, runtime.Version(), imaging.JPEGDecoder(), pack.ID[:16])
	for _, p := range []struct {
		name string
		run  func(context.Context, options, *engine.Engine) error
	}{{"engine", enginePart}, {"node", nodePart}, {"memory", memoryPart}} {
		if !hasPart(parts, p.name) {
			continue
		}
		if err := p.run(ctx, o, e); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
