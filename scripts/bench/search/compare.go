package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
	"facet/shard/scan"
)

const (
	// graphRows is the number of templates of a graph, and graphRows128 that of a large
	// graph with 128 numbers a template.
	graphRows, graphRows128 = 100_000, 1_000_000
)

// cell has the kernel's times with one threshold.
type cell struct {
	least
	times []float64
	hits  [][]scan.Hit
}

// bench is the comparison of one set with all peers.
type bench struct {
	o     options
	set   *set
	our   *ours
	kind  string
	gbs   float64 // memory read, GB/s
	found map[looking]breadth
}

// compare prints the tables of one set.
func compare(ctx context.Context, o options, s *set, checked bool) (err error) {
	began := time.Now()
	b := &bench{o: o, set: s, found: make(map[looking]breadth)}
	if b.our, err = newOurs(s); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.our.arena.Close()) }()
	if b.gbs, err = bandwidth(); err != nil {
		return err
	}
	n := len(s.rows) / s.dim
	fmt.Fprintf(o.out, "\n## %s, %d templates of %d numbers\n\nOurs: %.0f bytes a template, searchable after %.2f s (one core). Every search reads %.0f of them; memory is read at %.1f GB/s.\n",
		s.name, n, s.dim, b.our.m.BytesPerTemplate(), b.our.build.Seconds(), b.our.m.ScanBytes(), b.gbs)
	if checked && o.checks > 0 {
		if err := b.check(); err != nil {
			return err
		}
	}
	for _, name := range b.peers() {
		if err := b.against(ctx, name); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.out, "\n%s, %d of %d: %.0f s.\n", s.name, n, s.dim, time.Since(began).Seconds())
	return nil
}

// peers returns the names of the peers that suit the set. Without Python it returns one
// empty name, and the kernel is timed alone.
func (b *bench) peers() (names []string) {
	if b.o.python == "" {
		return []string{""}
	}
	for name := range strings.SplitSeq(b.o.peers, ",") {
		names = append(names, name)
		if name == "flat" && b.set.basis != "" {
			names = append(names, "model")
		}
	}
	n := len(b.set.rows) / b.set.dim
	for name := range strings.SplitSeq(b.o.graphs, ",") {
		if n <= graphRows || n <= graphRows128 && b.set.dim == 128 && strings.Contains(b.o.large, name) {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

func (b *bench) check() error {
	compared, wrong := 0, 0
	for _, probes := range [][]float32{b.set.mated, b.set.other} {
		c, w, err := b.our.check(probes[:min(len(probes), b.o.checks*b.set.dim)])
		if err != nil {
			return err
		}
		compared, wrong = compared+c, wrong+w
	}
	b.o.verdict.compared, b.o.verdict.wrong = b.o.verdict.compared+compared, b.o.verdict.wrong+wrong
	fmt.Fprintf(b.o.out, "%d hits compared with the plain scan, alone and in batches: %d differ.\n", compared, wrong)
	return nil
}

// against prints the table of the kernel and one peer. It times them in turn.
func (b *bench) against(ctx context.Context, name string) error {
	var p *peer
	if name != "" {
		var err error
		if p, err = newPeer(ctx, b.o, b.set, name); err != nil {
			return err
		}
		defer p.Close()
		b.o.verdict.builds = append(b.o.verdict.builds, figure{
			set: b.set.name, peer: name, dim: b.set.dim, rows: len(b.set.rows) / b.set.dim, ask: ask{limit: 10, batch: 1},
			ratio: p.built.Build / b.our.build.Seconds(),
		})
		fmt.Fprintf(b.o.out, "\n### %s: %.0f bytes a template, built in %.2f CPU seconds\n", name, p.built.Bytes, p.built.Build)
	}
	b.head(name)
	for _, batch := range []int{1, b.o.batch} {
		for _, limit := range []int{10, 50} {
			for _, kind := range []string{"mated", "non-mated"} {
				if batch <= 0 || name == "sgemm" && batch == 1 {
					continue
				}
				b.kind = kind
				if err := b.row(p, ask{limit: limit, batch: batch}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// probes returns the probes to time. For batches it returns one batch, and repeats
// probes only if there are too few.
func (b *bench) probes(batch int) []float32 {
	all, n := b.set.mated, b.o.probes
	if b.kind != "mated" {
		all = b.set.other
	}
	if batch > 1 {
		n = batch
	}
	probes := all[:min(len(all), n*b.set.dim)]
	for batch > 1 && len(probes) < batch*b.set.dim {
		probes = append(slices.Clip(probes), probes...)
	}
	return probes
}

// row times one way of searching. In each round it times the peer once, and the kernel
// with each threshold.
func (b *bench) row(p *peer, a ask) error {
	probes := b.probes(a.batch)
	cells := make([]cell, len(b.set.least))
	var theirs []float64
	var ids [][]int
	e, err := b.breadth(p, a.limit)
	if err != nil {
		return err
	}
	for range b.o.rounds {
		for i, l := range b.set.least {
			a.threshold = l.score
			ms, hits, err := b.our.time(probes, a)
			if err != nil {
				return err
			}
			cells[i].least, cells[i].hits = l, hits
			cells[i].times = append(cells[i].times, ms...)
		}
		if p == nil {
			continue
		}
		ms, found, err := p.time(probes, a, e.at)
		if err != nil {
			return err
		}
		theirs, ids = append(theirs, ms...), found
	}
	b.print(p, a, e, probes, theirs, ids, cells)
	return nil
}

// head prints the head of a table, with a column for each threshold. A column has the
// kernel's time and how many times longer the peer takes.
func (b *bench) head(name string) {
	switch steps, of := b.aim(name); {
	case steps == nil:
	case of.score == 0:
		fmt.Fprintf(b.o.out, "\nFactor: the least with which %.2f of the k best of both kinds of probes are found.\n", recallLeast)
	default:
		fmt.Fprintf(b.o.out, "\nBreadth: the least with which %.2f of the hits %s of both kinds of probes are found (of the k best, if no probe has such a hit).\n", recallLeast, of.name)
	}
	cells := []string{"probes", "k", "batch", name + " ms", "recall"}
	for _, l := range b.set.least {
		cells = append(cells, "ours "+l.name)
	}
	table.Head(b.o.out, append(cells, "memory's share", "missed")...)
}

func (b *bench) print(p *peer, a ask, e breadth, probes []float32, theirs []float64, ids [][]int, cells []cell) {
	hits := cells[len(cells)-1].hits // without threshold
	line := []string{b.kind, strconv.Itoa(a.limit), strconv.Itoa(a.batch), "", ""}
	if p != nil {
		line[3] = fmt.Sprintf("%.3f", median(theirs))
	}
	switch {
	case p == nil, p.name == "sgemm":
	case e.at > 0:
		line[4] = e.recall[b.kind]
	default:
		line[4] = fmt.Sprintf("%.4f", b.our.recall(probes, ids, hits, 0))
	}
	for _, c := range cells {
		ours := median(c.times)
		text := fmt.Sprintf("%.3f", ours)
		if p != nil {
			ratio := median(theirs) / ours
			b.o.verdict.figures = append(b.o.verdict.figures, figure{b.set.name, p.name, b.kind, c.name, b.set.dim, len(b.set.rows) / b.set.dim, a, ratio})
			text += fmt.Sprintf(" (%.1f ×)", ratio)
		}
		line = append(line, text)
	}
	line = append(line, "", "")
	if a.batch == 1 {
		read := b.our.m.ScanBytes() * float64(len(b.set.rows)/b.set.dim)
		line[len(line)-2] = fmt.Sprintf("%.0f %%", 100*read/b.gbs/1e6/median(cells[0].times))
	}
	if p != nil && p.name != "sgemm" {
		missed := b.our.missed(probes, ids, hits)
		b.o.verdict.missed += missed
		line[len(line)-1] = strconv.Itoa(missed)
	}
	table.Line(b.o.out, line...)
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// bandwidth returns how fast one core reads memory, in GB/s. It uses huge pages if the
// system has some.
func bandwidth() (float64, error) {
	const size = 512 << 20
	memory, release, err := machine.MapHuge(size)
	if err != nil {
		return 0, err
	}
	for i := range memory {
		memory[i] = 1
	}
	best := time.Hour
	for range 5 {
		begin := time.Now()
		if bytes.IndexByte(memory, 0) < 0 { // all of it, by vector instructions
			best = min(best, time.Since(begin))
		}
	}
	return size / best.Seconds() / 1e9, release()
}
