package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"facet/engine"
)

const (
	throughputGoal = .85 // of the pipeline's
	tailGoal       = 2   // p99 / p50
	loadShare      = .7
	loadRounds     = 3
	perCore        = 2 // requests at once
)

// nodePart compares a node's requests with the engine's extractions.
func nodePart(ctx context.Context, o options, e *engine.Engine) error {
	data, err := readPhoto(o.assets)
	if err != nil {
		return err
	}
	n, err := startNode(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(measureNode(ctx, o, e, n, data), n.close())
}

func measureNode(ctx context.Context, o options, e *engine.Engine, n *node, data []byte) error {
	c, err := newClient(n.info)
	if err != nil {
		return err
	}
	search, err1 := newOperation("/v1.1/face/search", map[string]any{"probe": encoded(data)})
	register, err2 := newOperation("/v1.1/subjects", map[string]any{"face": encoded(data)})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	pipeline := func() (func() error, func(), error) {
		return func() error { _, err := e.ExtractLarge(ctx, data, portraitPart); return err }, func() {}, nil
	}
	overHTTPS := func(o operation) func() (func() error, func(), error) {
		return func() (func() error, func(), error) {
			k, err := c.dial()
			if err != nil {
				return nil, nil, err
			}
			return func() error { _, err := k.do(o); return err }, k.close, nil
		}
	}
	loads := []load{{pid: os.Getpid(), open: pipeline}, {pid: n.pid(), open: overHTTPS(register)}, {pid: n.pid(), open: overHTTPS(search)}}
	atOnce := perCore * runtime.GOMAXPROCS(0)
	for range loadRounds {
		for i := range loads {
			l := &loads[i]
			m, err := closedLoop(o.phase/loadRounds, atOnce, l.pid, l.open)
			if err != nil {
				return err
			}
			l.sum.add(m)
		}
	}
	if err := printThroughput(o, atOnce, len(data), loads); err != nil {
		return err
	}
	return measureLatency(ctx, o, c, search, loads[2].sum.rate())
}

// load is what is measured in turn with others.
type load struct {
	pid  int
	open func() (do func() error, end func(), err error)
	sum  outcome
}

// printThroughput tells of the pipeline, registrations and searches, in this order.
func printThroughput(o options, atOnce, photoBytes int, loads []load) error {
	bare, reg, sea := loads[0].sum, loads[1].sum, loads[2].sum
	clock := func(m outcome) string {
		return fmt.Sprintf("%.1f/s by the clock, the client's share of the cores included", m.rate())
	}
	return printTable(o.out, fmt.Sprintf("HTTPS, one node, %d at once, the %d KB portrait; per second and core: of the measured process's processor time",
		atOnce, photoBytes>>10), []row{
		{what: "pipeline alone", value: bare.perCore(), unit: "/s", about: fmt.Sprintf("%.1f/s by the clock", bare.rate())},
		{what: "search", value: sea.perCore(), unit: "/s", about: clock(sea)},
		{what: "register", value: reg.perCore(), unit: "/s", about: clock(reg)},
		{what: "search / pipeline", value: sea.perCore() / bare.perCore(), goal: throughputGoal},
		{what: "register / pipeline", value: reg.perCore() / bare.perCore(), goal: throughputGoal},
	})
}

// measureLatency sends searches at a share of the rate that the node reached, in
// rounds, and tells of the round whose tail is the middle one: a pause of the
// machine is not the node's.
func measureLatency(ctx context.Context, o options, c *client, search operation, most float64) error {
	kinds := []struct {
		arrivals
		name   string
		goal   float64
		rounds []sample
	}{{even, "evenly spaced", tailGoal, nil}, {random, "at random (Poisson)", 0, nil}}
	duration := 2 * o.phase / loadRounds
	for range loadRounds {
		for i := range kinds {
			took, err := openLoop(ctx, c, search, kinds[i].schedule(loadShare*most, duration))
			if err != nil {
				return err
			}
			kinds[i].rounds = append(kinds[i].rounds, took)
		}
	}
	cores := runtime.GOMAXPROCS(0)
	service := time.Duration(float64(cores) / most * 1e9)
	for _, k := range kinds {
		slices.SortFunc(k.rounds, func(a, b sample) int { return cmp.Compare(a.tail(), b.tail()) })
		took := k.rounds[len(k.rounds)/2]
		ideal := queue(k.schedule(loadShare*most, duration), cores, service)
		title := fmt.Sprintf("Latency of searches at %.0f %% of that rate, open loop, arrivals %s; the middle of %d rounds of %d",
			100*loadShare, k.name, loadRounds, len(took))
		err := printTable(o.out, title, []row{
			{what: "p50", value: ms(took.at(.5)), unit: "ms", about: fmt.Sprintf("%.1f ms in a queue for %d perfect servers", ms(ideal.at(.5)), cores)},
			{what: "p99", value: ms(took.at(.99)), unit: "ms", about: fmt.Sprintf("%.1f ms in such a queue", ms(ideal.at(.99)))},
			{what: "p99 / p50", value: took.tail(), unit: "×", goal: k.goal, most: true, about: fmt.Sprintf("%.2f × in such a queue", ideal.tail())},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
