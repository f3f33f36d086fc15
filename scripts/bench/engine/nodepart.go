package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"facet/engine"
	"facet/scripts/bench/table"
)

const (
	throughputGoal = .85 // of the pipeline's
	loadRounds     = 3
	perCore        = 2 // requests at once
)

// nodePart compares a node's requests with the engine's extractions.
func nodePart(ctx context.Context, o options, e *engine.Engine) (err error) {
	data, err := readPhoto(o.assets)
	if err != nil {
		return err
	}
	var nodes []measured
	for procs := range strings.SplitSeq(o.procs, ",") {
		n, err2 := startNode(ctx, o, procs)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, n.close()) }()
		m, err2 := newMeasured(n, procs, data)
		if err2 != nil {
			return err2
		}
		nodes = append(nodes, m)
	}
	return measureNodes(ctx, o, e, nodes, data)
}

// measured is a node with what is asked of it.
type measured struct {
	node             *node
	client           *client
	name             string // of its setting, where several are compared
	search, register operation
}

func newMeasured(n *node, procs string, photo []byte) (measured, error) {
	m := measured{node: n}
	if procs != "" {
		m.name = " with GOMAXPROCS=" + procs
	}
	var err1, err2, err3 error
	m.client, err1 = newClient(n.info)
	m.search, err2 = newOperation("/v1.1/face/search", map[string]any{"probe": encoded(photo)})
	m.register, err3 = newOperation("/v1.1/subjects", map[string]any{"face": encoded(photo)})
	return m, errors.Join(err1, err2, err3)
}

func measureNodes(ctx context.Context, o options, e *engine.Engine, nodes []measured, data []byte) error {
	loads := []*load{{pid: os.Getpid(), open: func() (func() error, func(), error) {
		return func() error { _, err := e.ExtractLarge(ctx, data, portraitPart); return err }, func() {}, nil
	}}}
	for _, n := range nodes {
		loads = append(
			loads,
			&load{pid: n.node.pid(), open: n.client.loop(n.register)},
			&load{pid: n.node.pid(), open: n.client.loop(n.search)},
		)
	}
	atOnce := perCore * runtime.GOMAXPROCS(0)
	for range loadRounds {
		for _, l := range loads {
			m, err := closedLoop(o.phase/loadRounds, atOnce, l.pid, l.open)
			if err != nil {
				return err
			}
			l.sum.add(m)
		}
	}
	var servers []*server
	for i, n := range nodes {
		title := fmt.Sprintf("HTTPS, one node%s, %d at once, the %d KB portrait; per second and core: of the measured process's processor time",
			n.name, atOnce, len(data)>>10)
		if err := printThroughput(o, title, loads[0].sum, loads[2*i+1].sum, loads[2*i+2].sum); err != nil {
			return err
		}
		servers = append(servers, &server{name: n.name, pid: n.node.pid(), client: n.client, do: n.search})
	}
	return measureLatency(ctx, o, servers, loads[2].sum)
}

// load is what is measured in turn with others.
type load struct {
	pid  int
	open func() (do func() error, end func(), err error)
	sum  outcome
}

// printThroughput tells of the pipeline, registrations and searches.
func printThroughput(o options, title string, bare, reg, sea outcome) error {
	clock := func(m outcome) string {
		return fmt.Sprintf("%.1f/s by the clock, the client's share of the cores included", m.rate())
	}
	return table.Print(o.out, title, []table.Row{
		{What: "pipeline alone", Value: bare.perCore(), Unit: "/s", About: fmt.Sprintf("%.1f/s by the clock", bare.rate())},
		{What: "search", Value: sea.perCore(), Unit: "/s", About: clock(sea)},
		{What: "register", Value: reg.perCore(), Unit: "/s", About: clock(reg)},
		{What: "search / pipeline", Value: sea.perCore() / bare.perCore(), Goal: throughputGoal},
		{What: "register / pipeline", Value: reg.perCore() / bare.perCore(), Goal: throughputGoal},
	})
}
