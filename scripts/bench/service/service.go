package service

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"facet/engine"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
)

const (
	// A million templates take about 5 GB on three nodes.
	eventsMin, eventsMax = 1000, 5_000_000
	nodesMax             = 3
	readyWait            = 5 * time.Minute
	readyPoll            = 100 * time.Millisecond
	// portraitShare is the share with which the service calls the engine
	// (router.probe).
	portraitShare = .3
)

// bench is one run.
type bench struct {
	shape  cluster.Shape
	events int
	phase  time.Duration
	atOnce []int
	python string // "": no peer

	files   cluster.Files
	out     io.Writer
	engine  *engine.Engine
	photo   []byte
	face    engine.Face // of the photo, as this machine's models see it
	kernel  *kernelPart
	peer    *peer // nil: none
	gallery cluster.Gallery
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	b := bench{shape: cluster.Shape{Own: true}, atOnce: []int{1, 32}}
	flags.StringVar(&b.shape.Dir, "dir", "", "folder for the cluster, which stays and is used again; none: a temporary one")
	flags.IntVar(&b.events, "events", 300_000, "templates in the gallery")
	flags.IntVar(&b.shape.Nodes, "nodes", nodesMax, "nodes of the cluster, at most 3")
	flags.IntVar(&b.shape.Shards, "shards", 4, "shards of the cluster; the gallery gets one for each 50,000 templates")
	flags.DurationVar(&b.phase, "phase", 8*time.Second, "time for each load")
	flags.StringVar(&b.python, "python", filepath.Join("assets", "venv-bench", "bin", "python"), "interpreter with FAISS; empty: no peer")
	flags.Func("at-once", "how many searches are under way at a time (default 1,32)", func(list string) error {
		b.atOnce = nil
		for text := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return errors.New("want numbers with commas between them")
			}
			b.atOnce = append(b.atOnce, n)
		}
		return nil
	})
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	if b.events < eventsMin || b.events > eventsMax || b.shape.Nodes < 1 || b.shape.Nodes > nodesMax {
		return fmt.Errorf("%d to %d templates, 1 to %d nodes", eventsMin, eventsMax, nodesMax)
	}
	b.files, b.out = files, out
	if b.shape.Dir == "" {
		if b.shape.Dir, err = os.MkdirTemp("", "bench-service"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.shape.Dir)) }()
	}
	began := time.Now()
	if b.engine, err = files.Engine(1); err != nil {
		return err
	}
	defer b.engine.Close()
	if err := b.readPhoto(ctx); err != nil {
		return err
	}
	if b.gallery, err = files.Prepare(ctx, b.shape, b.events, b.photo, b.engine.Spectrum()); err != nil {
		return err
	}
	prepared := time.Since(began)
	if err := b.openKernel(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.kernel.close()) }()
	if b.peer, err = b.openPeer(ctx); err != nil {
		return err
	}
	defer b.peer.close()
	fmt.Fprintf(out, "\n%s, %d cores, which nodes and clients share. %d templates of %d numbers in %d shards, %d nodes; prepared in %.0f s.\n",
		machine.Processor(), runtime.NumCPU(), b.kernel.rows, b.gallery.Filled.Dim, len(b.gallery.Filled.Shards), b.shape.Nodes, prepared.Seconds())
	if err := b.measure(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe whole run took %.0f s.\n", time.Since(began).Seconds())
	return nil
}

func (b *bench) readPhoto(ctx context.Context) (err error) {
	if b.photo, err = b.files.Portrait(); err != nil {
		return err
	}
	faces, err := b.engine.ExtractLarge(ctx, b.photo, portraitShare)
	if err == nil && len(faces) == 0 {
		err = errors.New("there is no face in the photo")
	}
	if err == nil {
		b.face = faces[0]
	}
	return err
}

// warm waits until a search on every node finds the photo in each shard. Before that,
// nodes still decrypt templates.
func (b *bench) warm(ctx context.Context, client *https.Client, urls []string) error {
	o, err := https.NewSearch(probeImage(b.face.Template))
	if err != nil {
		return err
	}
	for _, url := range slices.Concat(urls, urls, urls) { // each replica is asked in its turn
		for begin := time.Now(); ; time.Sleep(readyPoll) {
			text, err := client.Send(url, o)
			if err == nil {
				if err = b.gallery.Check(text); err != nil {
					return err
				}
				break
			}
			if ctx.Err() != nil || time.Since(begin) > readyWait {
				return err
			}
		}
	}
	return nil
}
