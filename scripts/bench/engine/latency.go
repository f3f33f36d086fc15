package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	tailGoal        = 2 // p99 / p50
	loadShare       = .7
	latencyRounds   = 5
	openConnections = 64
)

// server is one of two servers that get the same load in turn.
type server struct {
	source *load.Source
	do     https.Operation
	rounds []machine.Sample
}

// round sends the operation at each of the due times.
func (s *server) round(ctx context.Context, due []time.Duration) error {
	t := new(load.Tally)
	s.source.Open(ctx, t, s.do, due)
	s.rounds = append(s.rounds, t.Good)
	return errors.Join(ctx.Err(), t.AllServed())
}

// middle returns the round with the median tail, so that one pause of the machine does
// not count against the server.
func (s *server) middle() machine.Sample {
	slices.SortFunc(s.rounds, func(a, b machine.Sample) int { return cmp.Compare(a.Tail(), b.Tail()) })
	return s.rounds[len(s.rounds)/2]
}

// measureLatency sends searches in turn to the node and to a burner that takes the same
// processor time for each. The rate is a share of the rate at which node and client
// would fill the cores.
func (b *bench) measureLatency(ctx context.Context, n *node, per outcome) (err error) {
	burner, err := startBurner()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, burner.close()) }()
	idle := load.NewSource(burner.client, burner.client.URL)
	defer idle.Close()
	nothing := &loaded{pids: []int{burner.cmd.Process.Pid}, do: sends(idle, burner.operation(n.search, 0))}
	if err := nothing.measure(ctx, b.phase/6); err != nil {
		return fmt.Errorf("the burner: %w", err)
	}
	service := time.Duration(1e9 / per.perCore())
	facet := &server{source: n.source, do: n.search}
	limit := &server{source: idle, do: burner.operation(n.search, service-time.Duration(1e9/nothing.sum.perCore()))}
	if err := errors.Join(facet.source.Warm(openConnections), limit.source.Warm(openConnections)); err != nil {
		return err
	}
	pids := append(n.PIDs(), os.Getpid(), burner.cmd.Process.Pid)
	rate := loadShare * per.most(runtime.GOMAXPROCS(0))
	before, err1 := machine.ReadBusy(pids)
	for _, kind := range []struct {
		name     string
		arrivals func(float64, time.Duration) []time.Duration
		goal     float64
	}{{"evenly spaced", load.Even, tailGoal}, {"at random (Poisson)", load.Random, 0}} {
		due := kind.arrivals(rate, b.phase/2)
		facet.rounds, limit.rounds = nil, nil
		for range latencyRounds {
			if err := errors.Join(facet.round(ctx, due), limit.round(ctx, due)); err != nil {
				return err
			}
		}
		title := fmt.Sprintf("Latency of searches at %.0f %% of what fills the cores (%.1f/s), open loop, arrivals %s; the middle of %d rounds of %d",
			100*loadShare, rate, kind.name, latencyRounds, len(due))
		if err := b.printLatency(title, kind.goal, facet, limit, queue(due, runtime.GOMAXPROCS(0), service)); err != nil {
			return err
		}
	}
	after, err2 := machine.ReadBusy(pids)
	fmt.Fprintf(b.out, "\nMeanwhile other programs, and the machine's host, took %.0f %% of its time.\n",
		100*(after.Others-before.Others).Seconds()/(after.All-before.All).Seconds())
	return errors.Join(err1, err2)
}

func (b *bench) printLatency(title string, goal float64, facet, burner *server, ideal machine.Sample) error {
	took, limit := facet.middle(), burner.middle()
	var tails []string
	for _, r := range facet.rounds {
		tails = append(tails, fmt.Sprintf("%.2f", r.Tail()))
	}
	about := func(q float64) string {
		return fmt.Sprintf("%.1f ms of a server that only burns, %.1f ms in a perfect queue", limit.MS(q), ideal.MS(q))
	}
	return table.Print(b.out, title, []table.Row{
		{What: "p50", Value: took.MS(.5), Unit: "ms", About: about(.5)},
		{What: "p99", Value: took.MS(.99), Unit: "ms", About: about(.99)},
		{
			What: "p99 / p50", Value: took.Tail(), Unit: "×", Goal: goal, Most: true,
			About: fmt.Sprintf("%.2f × of a server that only burns, %.2f × in a perfect queue; rounds: %s", limit.Tail(), ideal.Tail(), strings.Join(tails, " ")),
		},
		{What: "to that server's", Value: took.Tail() / limit.Tail(), Unit: "×"},
	})
}

// queue returns the times of requests, due at the given times, at servers that take
// them in order, each request for exactly the given time. No service of this throughput
// can be faster.
func queue(due []time.Duration, servers int, service time.Duration) machine.Sample {
	free := make([]time.Duration, servers)
	took := make(machine.Sample, len(due))
	for i, at := range due {
		next := slices.Index(free, slices.Min(free))
		free[next] = max(free[next], at) + service
		took[i] = free[next] - at
	}
	return took
}
