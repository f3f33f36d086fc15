package search

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
	"time"

	"facet/scripts/bench/cluster"
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
	quick             bool
	verdict           *verdict
	files             cluster.Files
	out               io.Writer
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	o := &options{verdict: &verdict{family: here()}}
	flags.StringVar(&o.sets, "sets", "easy,hard,real", "distributions of templates")
	flags.StringVar(&o.dims, "dims", "128,192,512", "dimensions of synthetic templates; real ones have their model's")
	flags.StringVar(&o.sizes, "sizes", "100000,1000000", "numbers of templates; 10000000, of up to 192 numbers, needs 30 GB")
	flags.StringVar(&o.peers, "peers", "flat,pq,sgemm", "peers that scan: flat and fp16 compare all, pq compares short codes and refines, sgemm gives scores only")
	flags.StringVar(&o.graphs, "graphs", "hnswlib,usearch", "peers that walk a graph: up to 100,000 templates")
	flags.StringVar(&o.large, "large", "hnswlib", "those of them that walk graphs of 1,000,000 templates of 128 numbers, too; usearch takes ten minutes more to build two")
	flags.StringVar(&o.faces, "faces", "", "folder of face images for real templates, a folder a person; empty: set-up's photos")
	flags.IntVar(&o.probes, "probes", 16, "probes of each kind that are timed")
	flags.IntVar(&o.checks, "checks", 350, "probes of each kind whose 50 best are compared with the plain scan, at the smallest size")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds; the median of all searches, or batches, is told")
	flags.IntVar(&o.batch, "batch", 32, "searches at once, beside single ones")
	flags.StringVar(&o.python, "python", filepath.Join("assets", "venv-bench", "bin", "python"), "interpreter with the peers' packages; empty: no peers")
	flags.StringVar(&o.dir, "dir", "", "folder that keeps templates and graphs for further runs; empty: a temporary one")
	flags.BoolVar(&o.quick, "quick", false, "one size, 100,000, of 128 and 192 numbers, without graphs: five minutes")
	return o.run
}

// Pin keeps this process and its peers on the last core.
func Pin() error {
	if runtime.NumCPU() == 1 { // the process is on the last core already
		return nil
	}
	return machine.StayOn(runtime.NumCPU() - 1)
}

func (o *options) run(ctx context.Context, files cluster.Files, out io.Writer) error {
	o.files, o.out = files, out
	if o.quick {
		o.sizes, o.dims, o.graphs, o.checks = "100000", "128,192", "", 200
	}
	if o.faces == "" {
		o.faces = filepath.Join(files.Assets, "photos")
	}
	if o.dir == "" {
		dir, err := os.MkdirTemp("", "bench-search")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	began := time.Now()
	runtime.GOMAXPROCS(1)
	if err := o.measure(ctx); err != nil {
		return err
	}
	if rows := o.verdict.rows(); len(rows) > 0 {
		if err := table.Print(out, "Goals for processors with "+o.verdict.family.String(), rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "\nThe whole run took %.1f minutes.\n", time.Since(began).Minutes())
	return err
}

func (o *options) measure(ctx context.Context) error {
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
			s, err := makeSet(ctx, *o, name, counts{slices.Max(sizes), max(o.probes, o.checks, recallProbes)}, dim)
			if err != nil {
				return err
			}
			for _, n := range sizes {
				if n > graphRows128 && s.dim > manyDim {
					continue
				}
				if err := compare(ctx, *o, s.prefix(n), n == slices.Min(sizes)); err != nil {
					return fmt.Errorf("%s, %d templates of %d numbers: %w", name, n, s.dim, err)
				}
			}
		}
	}
	return nil
}

// manyDim is the most numbers in a template of a set with more than a million rows.
const manyDim = 192

func numbers(list string) (n []int) {
	for s := range strings.SplitSeq(list, ",") {
		if i, err := strconv.Atoi(s); err == nil {
			n = append(n, i)
		}
	}
	return n
}

// makeSet makes a set, or reads the set that an earlier run left in the folder.
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
