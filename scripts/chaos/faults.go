package main

import (
	"syscall"
	"time"

	"facet/internal/chaos/lan"
)

// fault is something that can be done to a cluster.
type fault struct {
	name string
	// needs is what it can't do without. grave tells that it takes nodes out of service,
	// of which a majority must be left alone.
	needs need
	grave bool
	// most is the longest that it lasts.
	most time.Duration
	// begin does it to a node and gives what undoes it.
	begin func(n *nemesis, victim *process) (undo func() error, err error)
}

// need is what a fault can't do without.
type need int

const (
	nothing need = iota
	network      // namespaces
	disks        // a disk for each node
	tracing      // strace
	orders       // namespaces with a spare host, and no other fault that needs orders
	room         // orders, and more nodes than replicas
)

// processFaults are those of processes.
var processFaults = []fault{
	{"kill", nothing, true, 5 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		p.signal(syscall.SIGKILL)
		return func() error { return n.cluster.start(p) }, nil
	}},
	{"stop", nothing, true, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		p.signal(syscall.SIGTERM)
		return func() error { return n.cluster.start(p) }, nil
	}},
	{"pause", nothing, true, 6 * time.Second, func(_ *nemesis, p *process) (func() error, error) {
		p.signal(syscall.SIGSTOP)
		return func() error { p.signal(syscall.SIGCONT); return nil }, nil
	}},
	{"clock", nothing, false, time.Second, func(n *nemesis, p *process) (func() error, error) {
		return func() error { return nil }, n.clock(p)
	}},
	{"kill all", nothing, true, 2 * time.Second, func(n *nemesis, _ *process) (func() error, error) {
		for _, p := range n.cluster.members() {
			p.signal(syscall.SIGCONT)
			p.signal(syscall.SIGKILL)
		}
		return func() error {
			for _, p := range n.cluster.members() {
				if err := n.cluster.start(p); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}},
}

// networkFaults are those of links.
var networkFaults = []fault{
	{"isolate", network, true, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{Cut: true}, lan.Link{Cut: true}), nil
	}},
	{"deafen", network, true, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{}, lan.Link{Cut: true}), nil
	}},
	{"mute", network, true, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{Cut: true}, lan.Link{}), nil
	}},
	{"bridge", network, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		other := n.beside(p)
		return n.pair(p, other, lan.Link{Cut: true}), nil
	}},
	{"delay", network, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		slow := lan.Link{Delay: time.Duration(20+n.random.IntN(150)) * time.Millisecond}
		return n.links(p, slow, slow), nil
	}},
	{"loss", network, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		bad := lan.Link{Loss: .05 + .25*n.random.Float64()}
		return n.links(p, bad, bad), nil
	}},
}
