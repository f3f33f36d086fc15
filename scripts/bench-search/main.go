// Command bench-search times the search kernel beside its peers: the same rows, the
// same probes, the same core, in turn, huge pages for both.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/scan"
)

type options struct {
	sets, peers string
	dims, sizes string
	probes      int
	rounds      int
	limit       int
	batch       int
	python      string
	dir         string
	out         io.Writer
}

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.sets, "sets", "easy,hard", "distributions of synthetic templates")
	flag.StringVar(&o.peers, "peers", "flat", "flat, sq8, pq, sgemm (scores only), hnswEF, usearchEF (EF: breadth of the search)")
	flag.StringVar(&o.dims, "dims", "128,192", "dimensions")
	flag.StringVar(&o.sizes, "sizes", "100000,1000000", "templates")
	flag.IntVar(&o.probes, "probes", 32, "probes of each kind")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median and the best are told")
	flag.IntVar(&o.limit, "k", 10, "hits wanted")
	flag.IntVar(&o.batch, "batch", 0, "searches at once, beside single ones; 0: none")
	flag.StringVar(&o.python, "python", "python3", "interpreter with the peers' packages; empty: no peers")
	flag.StringVar(&o.dir, "dir", "", "folder for the rows; empty: a temporary one")
	flag.Parse()
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
	for _, dim := range numbers(o.dims) {
		for _, n := range numbers(o.sizes) {
			for name := range strings.SplitSeq(o.sets, ",") {
				make := map[string]func(uint64, int, int, int) *set{"easy": easy, "hard": hard}[name]
				if make == nil {
					return fmt.Errorf("no set %q", name)
				}
				if err := compare(ctx, o, make(1, n, dim, o.probes)); err != nil {
					return err
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

// ours is the kernel with the rows of a set.
type ours struct {
	m      *kernel.Matrix
	arena  *kernel.Arena
	table  *score.Table
	events map[id.Event]int
	build  time.Duration
}

func newOurs(s *set) (*ours, error) {
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: 0}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	if err != nil {
		return nil, err
	}
	o := &ours{arena: kernel.NewArena(0), table: table, events: map[id.Event]int{}}
	if o.m, err = kernel.New(o.arena, s.dim); err != nil {
		return nil, err
	}
	owners := make([]kernel.Owner, len(s.rows)/s.dim)
	for i := range owners {
		binary.BigEndian.PutUint32(owners[i].Event.UUID[:], uint32(i))
		binary.BigEndian.PutUint32(owners[i].Subject.UUID[:], uint32(i/samples))
		o.events[owners[i].Event] = i
	}
	begin := time.Now()
	for i := range owners {
		if _, err := o.m.Add(&owners[i], s.rows[i*s.dim:(i+1)*s.dim]); err != nil {
			return nil, err
		}
	}
	o.build = time.Since(begin)
	return o, nil
}

func (o *ours) queries(s *set, probes []float32, limit int, cosine float64) []scan.Query {
	threshold := 0
	if cosine > 0 {
		threshold = o.table.Score(float32(cosine))
	}
	qs := make([]scan.Query, len(probes)/s.dim)
	for i := range qs {
		qs[i] = scan.Query{Probe: probes[i*s.dim : (i+1)*s.dim], Limit: limit, Threshold: threshold}
	}
	return qs
}

func (o *ours) time(qs []scan.Query, batch int) (ms float64, ids [][]int, err error) {
	begin := time.Now()
	var all [][]scan.Hit
	for i := 0; i < len(qs); i += batch {
		if batch == 1 {
			hits, err := o.m.Search(o.table, qs[i])
			if err != nil {
				return 0, nil, err
			}
			all = append(all, hits)
			continue
		}
		lists, err := o.m.SearchAll(o.table, qs[i:min(i+batch, len(qs))])
		if err != nil {
			return 0, nil, err
		}
		all = append(all, lists...)
	}
	ms = float64(time.Since(begin).Microseconds()) / 1e3 / float64(len(qs))
	for _, hits := range all {
		list := []int{}
		for _, h := range hits {
			list = append(list, o.events[h.Event])
		}
		ids = append(ids, list)
	}
	return ms, ids, nil
}

// compare prints the lines of one set.
func compare(ctx context.Context, o options, s *set) (err error) {
	our, err := newOurs(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, our.arena.Close()) }()
	n := len(s.rows) / s.dim
	fmt.Fprintf(o.out, "\n%s, %d templates of %d numbers; ours: %.0f bytes a template, built in %.1f s, %s\n",
		s.name, n, s.dim, our.m.BytesPerTemplate(), our.build.Seconds(), bandwidth())
	var peers []*peer
	for name := range strings.SplitSeq(o.peers, ",") {
		if o.python == "" || name == "" {
			continue
		}
		p, err := newPeer(ctx, o, s, name)
		if err != nil {
			return err
		}
		defer p.close()
		peers = append(peers, p)
		fmt.Fprintf(o.out, "  %s built in %.1f s\n", name, p.build)
	}
	batches := []int{1}
	if o.batch > 1 {
		batches = append(batches, o.batch)
	}
	for _, batch := range batches {
		for kind, probes := range map[string][]float32{"mated": s.mated, "other": s.other} {
			if err := compareProbes(o, s, our, peers, kind, probes, batch); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareProbes(o options, s *set, our *ours, peers []*peer, kind string, probes []float32, batch int) error {
	file := filepath.Join(o.dir, "probes.f32")
	if err := os.WriteFile(file, bytesOf(probes), 0o600); err != nil {
		return err
	}
	cosines := []float64{.6, .5, .4, 0}
	times := make([][]float64, len(cosines))
	theirs := make([][]float64, len(peers))
	var exact [][]int
	recall := make([]float64, len(peers))
	for range o.rounds {
		for i, c := range cosines {
			ms, ids, err := our.time(our.queries(s, probes, o.limit, c), batch)
			if err != nil {
				return err
			}
			times[i] = append(times[i], ms)
			exact = ids
		}
		for i, p := range peers {
			ms, ids, err := p.time(file, o.limit, batch)
			if err != nil {
				return err
			}
			theirs[i] = append(theirs[i], ms)
			recall[i] = share(ids, exact)
		}
	}
	fmt.Fprintf(o.out, "  %s, batch %d\n", kind, batch)
	for i, p := range peers {
		fmt.Fprintf(o.out, "    %-16s %8.3f ms (best %.3f), recall@%d %.3f\n", p.name, median(theirs[i]), slices.Min(theirs[i]), o.limit, recall[i])
	}
	for i, c := range cosines {
		fmt.Fprintf(o.out, "    ours, least %.1f  %8.3f ms (best %.3f)", c, median(times[i]), slices.Min(times[i]))
		for j, p := range peers {
			fmt.Fprintf(o.out, "  %.1f (%.1f) x %s", median(theirs[j])/median(times[i]), slices.Min(theirs[j])/slices.Min(times[i]), p.name)
		}
		fmt.Fprintln(o.out)
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// share tells how many of want are in got.
func share(got, want [][]int) float64 {
	found, all := 0, 0
	for i := range min(len(got), len(want)) {
		for _, w := range want[i] {
			all++
			if slices.Contains(got[i], w) {
				found++
			}
		}
	}
	return float64(found) / float64(max(all, 1))
}

// bandwidth measures what one core reads from memory.
func bandwidth() string {
	words := make([]uint64, 64<<20)
	for i := range words {
		words[i] = uint64(i)
	}
	best := time.Hour
	for range 3 {
		begin := time.Now()
		var a, b, c, d uint64
		for i := 0; i+8 <= len(words); i += 8 { // a word of each line
			a += words[i]
			b += words[i+2]
			c += words[i+4]
			d += words[i+6]
		}
		if took := time.Since(begin); a+b+c+d != 1 {
			best = min(best, took)
		}
	}
	return fmt.Sprintf("memory read at %.1f GB/s", float64(len(words)*8)/best.Seconds()/1e9)
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}

// peer is a process of peers.py with the rows of a set.
type peer struct {
	name  string
	build float64
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Reader
}

func newPeer(ctx context.Context, o options, s *set, name string) (*peer, error) {
	file := filepath.Join(o.dir, "rows.f32")
	if err := os.WriteFile(file, bytesOf(s.rows), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.python, "scripts/bench-search/peers.py")
	cmd.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &peer{name: name, cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out)}
	var answer struct{ Build float64 }
	if err := p.ask(map[string]any{"rows": file, "dim": s.dim, "index": name}, &answer); err != nil {
		return nil, err
	}
	p.build = answer.Build
	return p, nil
}

func (p *peer) ask(question, answer any) error {
	if err := p.in.Encode(question); err != nil {
		return fmt.Errorf("ask %s: %w", p.name, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("answer of %s: %w", p.name, err)
	}
	return json.Unmarshal(line, answer)
}

func (p *peer) time(probes string, limit, batch int) (ms float64, ids [][]int, err error) {
	var answer struct {
		MS  []float64
		IDs [][]int
	}
	err = p.ask(map[string]any{"probes": probes, "k": limit, "batch": batch, "rounds": 1}, &answer)
	if err != nil {
		return 0, nil, err
	}
	return answer.MS[0], answer.IDs, nil
}

// close ends the process, whose answers are all read.
func (p *peer) close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
