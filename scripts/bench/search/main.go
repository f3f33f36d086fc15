// Command bench-search times the search kernel beside its peers: the same rows, the
// same probes, the same core, in turn, huge pages for both. run.sh makes the peers'
// Python environment and calls it; docs/benchmarks keeps what it printed.
package main

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

	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

type options struct {
	sets, dims, sizes string
	peers             string
	graphs, large     string
	faces             string
	probes, checks    int
	rounds, batch     int
	python, dir       string
	quick, build      bool
	results           string
	bound             string
	verdict           *verdict
	out               io.Writer
}

func main() {
	o := options{out: os.Stdout, verdict: &verdict{}}
	flag.StringVar(&o.sets, "sets", "easy,hard,real", "distributions of templates")
	flag.StringVar(&o.dims, "dims", "128,192,512", "dimensions of synthetic templates; real ones have their model's")
	flag.StringVar(&o.sizes, "sizes", "100000,1000000", "numbers of templates; 10000000, of up to 192 numbers, needs 30 GB")
	flag.StringVar(&o.peers, "peers", "flat,pq,sgemm", "peers that scan: flat and fp16 compare all, pq compares short codes and refines, sgemm gives scores only")
	flag.StringVar(&o.graphs, "graphs", "hnswlib,usearch", "peers that walk a graph: up to 100,000 templates")
	flag.StringVar(&o.large, "large", "hnswlib", "those of them that walk graphs of 1,000,000 templates of 128 numbers, too; usearch takes ten minutes more to build two")
	flag.StringVar(&o.faces, "faces", filepath.Join("assets", "photos"), "folder of face images for real templates, a folder a person")
	flag.IntVar(&o.probes, "probes", 16, "probes of each kind that are timed")
	flag.IntVar(&o.checks, "checks", 350, "probes of each kind whose 50 best are compared with the plain scan, at the smallest size")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds; the median of all searches, or batches, is told")
	flag.IntVar(&o.batch, "batch", 32, "searches at once, beside single ones")
	flag.StringVar(&o.python, "python", "python3", "interpreter with the peers' packages; empty: no peers")
	flag.StringVar(&o.dir, "dir", "", "folder that keeps templates and graphs for further runs; empty: a temporary one")
	flag.BoolVar(&o.quick, "quick", false, "one size, 100,000, of 128 and 192 numbers, without graphs: five minutes")
	flag.BoolVar(&o.build, "build", false, "only make what -dir keeps")
	flag.StringVar(&o.bound, "bound", certified, "bounds of the kernel's searches: certified, or probable, which lose a hit with a probability of 5e-10")
	flag.StringVar(&o.results, "results", "bench-search.out", "file to which all tables are added as they come; empty: none")
	flag.Parse()
	if o.bound != certified && o.bound != probable {
		fmt.Fprintf(os.Stderr, "bench-search: -bound is %s or %s\n", certified, probable)
		os.Exit(2)
	}
	o.verdict.bound = o.bound
	if o.quick {
		o.sizes, o.dims, o.graphs, o.checks = "100000", "128,192", "", 200
	}
	if err := record(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-search:", err)
		os.Exit(1)
	}
}

// record runs, and keeps what is printed, so that a run that is stopped has not been
// for nothing.
func record(ctx context.Context, o options) (err error) {
	if o.results != "" && !o.build {
		f, err := os.OpenFile(o.results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // for everybody to read
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.out = io.MultiWriter(o.out, f)
	}
	began := time.Now()
	fmt.Fprintf(o.out, "# bench-search, %s, %s\n\n%s\n", began.Format(time.DateTime), machine.Processor(), strings.Join(os.Args[1:], " "))
	if err := run(ctx, o); err != nil {
		return err
	}
	if rows := o.verdict.rows(); len(rows) > 0 {
		if err := table.Print(o.out, "Goals", rows); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(o.out, "\nThe whole run took %.1f minutes.\n", time.Since(began).Minutes())
	return err
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
			s, err := makeSet(ctx, o, name, counts{slices.Max(sizes), max(o.probes, o.checks, recallProbes)}, dim)
			if err != nil {
				return err
			}
			for _, n := range sizes {
				if n > graphRows128 && s.dim > manyDim {
					continue
				}
				if err := compare(ctx, o, s.prefix(n), n == slices.Min(sizes)); err != nil {
					return fmt.Errorf("%s, %d templates of %d numbers: %w", name, n, s.dim, err)
				}
			}
		}
	}
	return nil
}

// manyDim is the most numbers that templates have which are more than a million.
const manyDim = 192

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
		if s = readSet(o.dir, name, n, dim); s == nil {
			s = generators[name](newRandom(dim), n, dim)
		}
		s.spectrum = spectrumOf(name, dim)
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
