package cold

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unsafe"

	"facet/scripts/bench/cluster"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/search"
	"facet/scripts/bench/table"
)

// kind is a kind of search, with the goals for cold rows: times the time of the old kernel.
type kind struct {
	name             string
	limit, threshold int
	alone, together  float64
}

var kinds = []kind{
	{"10 best ≥ 7000", 10, 7000, 1.6, 1.5},
	{"10 best", 10, 0, 2, 2},
	{"50 best", 50, 0, 3.5, 3.5},
}

// warmGoal is the goal while all rows are in memory.
const warmGoal = 1.2

// batch is how many searches there are at once.
const batch = 32

type options struct {
	rows, probes, checks, rounds int
	faces, dir                   string
	files                        cluster.Files
	out                          io.Writer
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	o := &options{}
	flags.IntVar(&o.rows, "rows", 1_000_000, "templates")
	flags.IntVar(&o.probes, "probes", 64, "probes of each kind that are timed")
	flags.IntVar(&o.checks, "checks", 700, "probes of each kind whose hits are compared")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds; the median of their ratios is told")
	flags.StringVar(&o.faces, "faces", "", "folder of face images, a folder a person; empty: set-up's photos")
	flags.StringVar(&o.dir, "dir", "", "folder that keeps the images' templates for further runs; empty: a temporary one")
	return o.run
}

func (o *options) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	o.files, o.out = files, out
	began := time.Now()
	scratch, err := os.MkdirTemp("", "bench-cold")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	o.dir = cmp.Or(o.dir, scratch)
	if err := o.measure(ctx, scratch); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nThe whole run took %.1f minutes.\n", time.Since(began).Minutes())
	return err
}

func (o *options) measure(ctx context.Context, scratch string) (err error) {
	program, err := buildOld(ctx, scratch)
	if err != nil {
		return err
	}
	real, err := search.MakeReal(ctx, o.files, o.faces, o.dir, o.rows, max(o.probes, o.checks))
	if err != nil {
		return err
	}
	s := set{filepath.Join(scratch, "rows.f32"), real.Dim, real.Points, real.Spectrum}
	if err := real.Write(s.Rows); err != nil {
		return err
	}
	peer, err := startOld(ctx, program, scratch, s)
	if err != nil {
		return err
	}
	defer peer.Close()
	mine, err := newOurs(scratch, real.Table, s, real.Rows)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, mine.close()) }()
	real.Rows = nil
	if err := mine.open(ctx); err != nil {
		return err
	}
	m := &measurement{options: o, real: real, peer: peer, mine: mine}
	if err := m.time(ctx, "warm"); err != nil {
		return err
	}
	if share := mine.chill(o.rows); share < .99 {
		return fmt.Errorf("only %.2f of the rows are cold", share)
	}
	if err := m.time(ctx, "cold"); err != nil {
		return err
	}
	if err := m.compare(ctx); err != nil {
		return err
	}
	return table.Print(o.out, fmt.Sprintf("%d templates of %d numbers, beside the kernel of commit %s", o.rows, real.Dim, commit), m.rows)
}

// measurement is a run.
type measurement struct {
	*options
	real *search.Real
	peer *old
	mine *ours
	rows []table.Row
}

// probesOf returns the probes of persons in the gallery and of others, n of each at most.
func (m *measurement) probesOf(n int) map[string][]float32 {
	n *= m.real.Dim
	return map[string][]float32{
		"mated":     m.real.Mated[:min(n, len(m.real.Mated))],
		"non-mated": m.real.Other[:min(n, len(m.real.Other))],
	}
}

// time measures all kinds of searches. Peer and shard take turns.
func (m *measurement) time(ctx context.Context, state string) error {
	probes := m.probesOf(m.probes)
	for _, k := range kinds {
		for _, who := range []string{"mated", "non-mated"} {
			for _, together := range []int{1, batch} {
				goal := map[bool]float64{true: k.alone, false: k.together}[together == 1]
				if state == "warm" {
					goal = warmGoal
				}
				r, err := m.ratios(ctx, probes[who], k, together)
				if err != nil {
					return err
				}
				m.rows = append(m.rows, table.Row{
					What:  fmt.Sprintf("%s, %s, %s, %s", state, k.name, who, map[bool]string{true: "alone", false: "32 at once"}[together == 1]),
					Value: r.wall, Unit: "×", Goal: goal, Most: true,
					About: fmt.Sprintf("%.2f ms beside %.2f; processor time %.1f ×", r.mine, r.peer, r.processor),
				})
			}
		}
	}
	return nil
}

// ratios are medians of the rounds. The times are of one search, in milliseconds.
type ratios struct{ wall, processor, mine, peer float64 }

func (m *measurement) ratios(ctx context.Context, probes []float32, k kind, together int) (r ratios, err error) {
	var wall, processor, mine, peer []float64
	for range m.rounds {
		peerBefore, err := machine.CPU(m.peer.PID())
		if err != nil {
			return r, err
		}
		theirs, err := m.peer.search(ctx, probes, k, together)
		if err != nil {
			return r, err
		}
		peerAfter, err := machine.CPU(m.peer.PID())
		if err != nil {
			return r, err
		}
		before, err := machine.OwnCPU()
		if err != nil {
			return r, err
		}
		own, err := m.mine.search(ctx, probes, k, together)
		if err != nil {
			return r, err
		}
		after, err := machine.OwnCPU()
		if err != nil {
			return r, err
		}
		wall, mine, peer = append(wall, own.MS/theirs.MS), append(mine, own.MS), append(peer, theirs.MS)
		processor = append(processor, float64(after-before)/float64(peerAfter-peerBefore))
	}
	return ratios{median(wall), median(processor), median(mine), median(peer)}, nil
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// compare compares the hits of cold searches with those of the peer, alone and at once.
func (m *measurement) compare(ctx context.Context) error {
	compared, differ := 0, 0
	for who, probes := range m.probesOf(m.checks) {
		for _, k := range kinds {
			for _, together := range []int{1, batch} {
				theirs, err := m.peer.search(ctx, probes, k, together)
				if err != nil {
					return err
				}
				own, err := m.mine.search(ctx, probes, k, together)
				if err != nil {
					return err
				}
				for i, want := range theirs.Hits {
					compared += len(want)
					if !slices.Equal(own.Hits[i], want) {
						differ++
						fmt.Fprintf(m.out, "%s, %s, probe %d: got %v, want %v\n", who, k.name, i, own.Hits[i], want)
					}
				}
			}
		}
	}
	m.rows = append(m.rows,
		table.Row{What: "hits compared, all rows cold", Value: float64(compared), Goal: 100_000},
		table.Row{What: "searches whose hits differ", Value: float64(differ)})
	if differ > 0 {
		return fmt.Errorf("%d searches differ from those of commit %s", differ, commit)
	}
	return nil
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}
