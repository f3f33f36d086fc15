package engine

import (
	"context"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"facet/engine"
	"facet/engine/imaging"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/machine"
)

// bench is one run.
type bench struct {
	parts    string
	rounds   int
	phase    time.Duration
	requests int
	files    cluster.Files
	engine   *engine.Engine
	out      io.Writer
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	var b bench
	flags.StringVar(&b.parts, "parts", "engine,node", "engine: models, decoder and pipeline; detectors: faces found; node: HTTPS; memory: the long run")
	flags.IntVar(&b.rounds, "rounds", 25, "rounds of the engine's part")
	flags.DurationVar(&b.phase, "phase", 6*time.Second, "time for each load of the node's part")
	flags.IntVar(&b.requests, "requests", 100_000, "requests of the long run")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	b.files, b.out = files, out
	if b.engine, err = files.Engine(0); err != nil {
		return err
	}
	defer b.engine.Close()
	fmt.Fprintf(out, "\n%s, %d cores, %s/%s, %s; JPEG by %s; pack %s\n", machine.Processor(), runtime.GOMAXPROCS(0),
		runtime.GOOS, runtime.GOARCH, runtime.Version(), imaging.JPEGDecoder(), b.engine.Pack().ID[:16])
	chosen := strings.Split(b.parts, ",")
	for _, p := range []struct {
		name string
		run  func(context.Context) error
	}{{"engine", b.enginePart}, {"detectors", b.detectorPart}, {"node", b.nodePart}, {"memory", b.memoryPart}} {
		if !slices.Contains(chosen, p.name) {
			continue
		}
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
