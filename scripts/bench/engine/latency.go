package main

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

	"facet/scripts/bench/table"
)

const (
	tailGoal      = 2 // p99 / p50
	loadShare     = .7
	latencyRounds = 5
)

// server is somebody whom the same load is sent to in turn with others.
type server struct {
	name   string
	pid    int
	client *client
	do     operation
	rounds []sample
}

// middle is the round whose tail is the middle one: a pause of the machine is not
// the server's.
func (s *server) middle() sample {
	slices.SortFunc(s.rounds, func(a, b sample) int { return cmp.Compare(a.tail(), b.tail()) })
	return s.rounds[len(s.rounds)/2]
}

// measureLatency sends searches at a share of the rate at which node and client
// would fill the cores, in turn to the nodes and to a burner that takes the same processor time for each.
func measureLatency(ctx context.Context, o options, nodes []*server, per outcome) (err error) {
	b, err := startBurner()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	service := time.Duration(1e9 / per.perCore())
	own, err := burnerOverhead(o, b, nodes[0].do)
	if err != nil {
		return err
	}
	limit := &server{name: "a server that only burns", client: b.client, do: b.operation(nodes[0].do, service-own)}
	servers := append(slices.Clone(nodes), limit)
	pids := []int{os.Getpid(), b.cmd.Process.Pid}
	for _, n := range nodes {
		pids = append(pids, n.pid)
	}
	rate := loadShare * per.most(runtime.GOMAXPROCS(0))
	before, err1 := busy(pids)
	for _, kind := range []struct {
		arrivals
		name string
		goal float64
	}{{even, "evenly spaced", tailGoal}, {random, "at random (Poisson)", 0}} {
		due := kind.schedule(rate, o.phase/2)
		for range latencyRounds {
			for _, s := range servers {
				took, err := openLoop(ctx, s.client, s.do, due)
				if err != nil {
					return fmt.Errorf("%s: %w", s.name, err)
				}
				s.rounds = append(s.rounds, took)
			}
		}
		if err := printLatency(o, kind.name, kind.goal, rate, servers, queue(due, runtime.GOMAXPROCS(0), service)); err != nil {
			return err
		}
		for _, s := range servers {
			s.rounds = nil
		}
	}
	after, err2 := busy(pids)
	fmt.Fprintf(o.out, "  meanwhile other programs, and the machine's host, took %.0f %% of its time\n",
		100*(after.others-before.others).Seconds()/(after.all-before.all).Seconds())
	return errors.Join(err1, err2)
}

// burnerOverhead is the processor time of the burner's requests that burn nothing.
func burnerOverhead(o options, b *burner, like operation) (time.Duration, error) {
	idle := b.operation(like, 0)
	m, err := closedLoop(o.phase/6, perCore*runtime.GOMAXPROCS(0), b.cmd.Process.Pid, b.client.loop(idle))
	if err != nil {
		return 0, fmt.Errorf("the burner: %w", err)
	}
	return time.Duration(1e9 / m.perCore()), nil
}

func printLatency(o options, arrivals string, goal, rate float64, servers []*server, ideal sample) error {
	limit := servers[len(servers)-1].middle()
	for _, s := range servers[:len(servers)-1] {
		took := s.middle()
		title := fmt.Sprintf("Latency of searches%s at %.0f %% of what fills the cores (%.1f/s), open loop, arrivals %s; the middle of %d rounds of %d",
			s.name, 100*loadShare, rate, arrivals, latencyRounds, len(took))
		var tails []string
		for _, r := range s.rounds {
			tails = append(tails, fmt.Sprintf("%.2f", r.tail()))
		}
		about := func(q float64) string {
			return fmt.Sprintf("%.1f ms of a server that only burns, %.1f ms in a perfect queue", ms(limit.at(q)), ms(ideal.at(q)))
		}
		err := table.Print(o.out, title, []table.Row{
			{What: "p50", Value: ms(took.at(.5)), Unit: "ms", About: about(.5)},
			{What: "p99", Value: ms(took.at(.99)), Unit: "ms", About: about(.99)},
			{
				What: "p99 / p50", Value: took.tail(), Unit: "×", Goal: goal, Most: true,
				About: fmt.Sprintf("%.2f × of a server that only burns, %.2f × in a perfect queue; rounds: %s", limit.tail(), ideal.tail(), strings.Join(tails, " ")),
			},
			{What: "to that server's", Value: took.tail() / limit.tail(), Unit: "×"},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
