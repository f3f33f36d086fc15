// Command bench-search times the search kernel beside its peers: the same rows, the
// same probes, the same core, in turn, huge pages for both. run.sh makes the peers'
// Python environment and calls it; docs/performance.md keeps what it printed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

type options struct {
	sets, dims, sizes string
	peers, graphs     string
	faces             string
	probes, checks    int
	rounds, batch     int
	python, dir       string
	quick, build      bool
	out               io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.sets, "sets", "easy,hard,real", "distributions of templates")
	flag.StringVar(&o.dims, "dims", "128,192,512", "dimensions of synthetic templates; real ones have their model's")
	flag.StringVar(&o.sizes, "sizes", "100000,1000000", "numbers of templates; 10000000 needs 30 GB at 192 numbers")
	flag.StringVar(&o.peers, "peers", "flat,fp16,pq,sgemm", "peers that scan; sgemm gives scores only")
	flag.StringVar(&o.graphs, "graphs", "hnswlib,usearch", "peers that walk a graph: up to 100,000 templates; the first of them up to 1,000,000 at 128 numbers")
	flag.StringVar(&o.faces, "faces", filepath.Join("assets", "photos"), "folder of face images for real templates, a folder a person")
	flag.IntVar(&o.probes, "probes", 16, "probes of each kind that are timed")
	flag.IntVar(&o.checks, "checks", 500, "probes of each kind whose 50 best are compared with the plain scan, at the smallest size")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, of which the medians are told")
	flag.IntVar(&o.batch, "batch", 32, "searches at once, beside single ones")
	flag.StringVar(&o.python, "python", "python3", "interpreter with the peers' packages; empty: no peers")
	flag.StringVar(&o.dir, "dir", "", "folder that keeps templates and graphs for further runs; empty: a temporary one")
	flag.BoolVar(&o.quick, "quick", false, "one size, 100,000, of 128 and 192 numbers, without graphs: five minutes")
	flag.BoolVar(&o.build, "build", false, "only make what -dir keeps")
	flag.Parse()
	if o.quick {
		o.sizes, o.dims, o.graphs, o.checks = "100000", "128,192", "", 200
	}
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-search:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	runtime.GOMAXPROCS(1)
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "bench-search")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	sizes := numbers(o.sizes)
	if len(sizes) == 0 {
		return fmt.Errorf("no sizes in %q", o.sizes)
	}
	for name := range strings.SplitSeq(o.sets, ",") {
		dims := numbers(o.dims)
		if name == "real" {
			dims = []int{0}
		}
		for _, dim := range dims {
			s, err := makeSet(ctx, o, name, counts{slices.Max(sizes), max(o.probes, o.checks)}, dim)
			if err != nil {
				return err
			}
			for _, n := range sizes {
				if err := compare(ctx, o, s.prefix(n), n == slices.Min(sizes)); err != nil {
					return fmt.Errorf("%s, %d templates of %d numbers: %w", name, n, s.dim, err)
				}
			}
		}
	}
	return nil
}

func numbers(list string) (n []int) {
	for s := range strings.SplitSeq(list, ",") {
		if i, err := strconv.Atoi(s); err == nil {
			n = append(n, i)
		}
	}
	return n
}

// makeSet makes a set, or reads what an earlier run left in the folder.
func makeSet(ctx context.Context, o options, name string, n counts, dim int) (*set, error) {
	var s *set
	switch name {
	case "easy", "hard":
		make := map[string]func(counts, int) *set{"easy": easy, "hard": hard}[name]
		if s = readSet(o.dir, name, n, dim); s == nil {
			s = make(n, dim)
		}
	case "real":
		f, err := readFaces(ctx, o)
		if err != nil {
			return nil, err
		}
		if s, err = f.real(n); err != nil {
			return nil, err
		}
		s.basis, s.cols = f.basis, f.cols
	default:
		return nil, fmt.Errorf("no distribution %q", name)
	}
	return s, s.write(o.dir, n)
}
