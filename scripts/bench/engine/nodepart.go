package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/load"
	"facet/scripts/bench/machine"
	"facet/scripts/bench/table"
)

const (
	throughputGoal = .85 // of the pipeline's
	loadRounds     = 3
	perCore        = 2 // requests at once
)

// outcome describes a load: the number of requests and what they cost.
type outcome struct {
	done    int
	elapsed time.Duration
	cpu     time.Duration // of the measured processes
	own     time.Duration // of this process, the client
}

// rate returns the requests in a second of the clock, perCore those in a second of
// processor time.
func (o outcome) rate() float64    { return float64(o.done) / o.elapsed.Seconds() }
func (o outcome) perCore() float64 { return float64(o.done) / o.cpu.Seconds() }

// most returns the rate at which client and node would fill the cores. It does not
// depend on what else ran meanwhile.
func (o outcome) most(cores int) float64 {
	return float64(cores) * float64(o.done) / (o.cpu + o.own).Seconds()
}

// loaded is a set of processes under a closed loop. It is measured in turn with others.
type loaded struct {
	pids []int
	do   func() error
	sum  outcome
}

// measure measures one more round and adds it to the sum.
func (l *loaded) measure(ctx context.Context, d time.Duration) error {
	var r load.Result
	u, err := machine.Watch(func() (err error) {
		r, err = load.Closed(ctx, perCore*runtime.GOMAXPROCS(0), d, func(int, int) error { return l.do() })
		return err
	}, l.pids...)
	l.sum.done += len(r.Times)
	l.sum.elapsed += u.Elapsed
	l.sum.cpu += u.CPU
	l.sum.own += u.Own
	return err
}

// sends returns a function that sends o. The function returns an error unless o is
// served.
func sends(s *load.Source, o https.Operation) func() error {
	return func() error {
		a, _, err := s.Do(o)
		if err == nil && !a.Good() {
			err = &https.StatusError{Target: o.Target, Answer: a}
		}
		return err
	}
}

// nodePart compares the requests of a node with the extractions of the engine.
func (b *bench) nodePart(ctx context.Context) (err error) {
	data, err := b.files.Portrait()
	if err != nil {
		return err
	}
	n, err := b.startNode(ctx, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	pipeline := &loaded{pids: []int{os.Getpid()}, do: func() error {
		_, err := b.engine.ExtractLarge(ctx, data, portraitPart)
		return err
	}}
	register := &loaded{pids: n.PIDs(), do: sends(n.source, n.register)}
	search := &loaded{pids: n.PIDs(), do: sends(n.source, n.search)}
	for range loadRounds {
		for _, l := range []*loaded{pipeline, register, search} {
			if err := l.measure(ctx, b.phase/loadRounds); err != nil {
				return err
			}
		}
	}
	title := fmt.Sprintf("HTTPS, one node, %d at once, the %d KB portrait; per second and core: of the measured process's processor time",
		perCore*runtime.GOMAXPROCS(0), len(data)>>10)
	if err := b.printThroughput(title, pipeline.sum, register.sum, search.sum); err != nil {
		return err
	}
	return b.measureLatency(ctx, n, search.sum)
}

// printThroughput prints the rates of the pipeline, registrations and searches.
func (b *bench) printThroughput(title string, bare, reg, sea outcome) error {
	clock := func(m outcome) string {
		return fmt.Sprintf("%.1f/s by the clock, the client's share of the cores included", m.rate())
	}
	return table.Print(b.out, title, []table.Row{
		{What: "pipeline alone", Value: bare.perCore(), Unit: "/s", About: fmt.Sprintf("%.1f/s by the clock", bare.rate())},
		{What: "search", Value: sea.perCore(), Unit: "/s", About: clock(sea)},
		{What: "register", Value: reg.perCore(), Unit: "/s", About: clock(reg)},
		{What: "search / pipeline", Value: sea.perCore() / bare.perCore(), Goal: throughputGoal},
		{What: "register / pipeline", Value: reg.perCore() / bare.perCore(), Goal: throughputGoal},
	})
}
