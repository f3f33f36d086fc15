package main

import (
	"slices"
	"syscall"
	"time"

	"facet/scripts/chaos/lan"
)

// fault is one kind of fault.
type fault struct {
	name string
	// needs is what the fault needs of the machine or the cluster. grave reports
	// whether the fault takes nodes out of service; a majority of the nodes must be
	// left alone.
	needs need
	grave bool
	// lone reports whether the fault is rare, and never comes with another.
	lone bool
	// most is the longest that the fault lasts.
	most time.Duration
	// begin injects the fault into a node and returns the function that undoes it.
	begin func(n *nemesis, victim *process) (undo func() error, err error)
}

// need is what a fault needs of the machine or the cluster.
type need int

const (
	nothing need = iota
	network      // namespaces
	disks        // a disk for each node
	tracing      // strace
	orders       // namespaces with a spare host, and no other fault that needs orders
	room         // orders, and more nodes than replicas
)

// processFaults are the faults of processes.
var processFaults = []fault{
	killMost,
	{"kill", nothing, true, false, 5 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		p.Signal(syscall.SIGKILL)
		return func() error { return n.cluster.start(p) }, nil
	}},
	{"stop", nothing, true, false, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		p.Signal(syscall.SIGTERM)
		return func() error { return n.cluster.start(p) }, nil
	}},
	{"pause", nothing, true, false, 6 * time.Second, func(_ *nemesis, p *process) (func() error, error) {
		p.Signal(syscall.SIGSTOP)
		return func() error { p.Signal(syscall.SIGCONT); return nil }, nil
	}},
	{"clock", nothing, false, false, time.Second, func(n *nemesis, p *process) (func() error, error) {
		return func() error { return nil }, n.clock(p)
	}},
	wrongTime,
	{"kill all", nothing, true, true, 2 * time.Second, func(n *nemesis, _ *process) (func() error, error) {
		for _, p := range n.cluster.members() {
			p.Signal(syscall.SIGCONT)
			p.Signal(syscall.SIGKILL)
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

// killMost kills a majority at once. Nothing is served until one of the killed nodes is
// back.
var killMost = fault{"kill most", nothing, true, true, 3 * time.Second, func(n *nemesis, p *process) (func() error, error) {
	nodes := n.cluster.members()
	first := slices.Index(nodes, p)
	var dead []*process
	for i := range len(nodes)/2 + 1 {
		dead = append(dead, nodes[(first+i)%len(nodes)])
	}
	for _, p := range dead {
		p.Signal(syscall.SIGKILL)
	}
	return func() error {
		for _, p := range dead {
			if err := n.cluster.start(p); err != nil {
				return err
			}
		}
		return nil
	}, nil
}}

// bridgeName names the fault that cuts the link between two nodes, in both directions or in
// one. A third node reaches both.
const bridgeName = "bridge"

// swizzle cuts off all nodes, one after the other, and then heals them in another
// order.
var swizzle = fault{"swizzle", network, true, true, 4 * time.Second, func(n *nemesis, _ *process) (func() error, error) {
	nodes := n.cluster.members()
	step := func(undo bool) {
		for _, i := range n.random.Perm(len(nodes)) {
			n.links(nodes[i], lan.Link{Cut: !undo}, lan.Link{Cut: !undo})
			time.Sleep(time.Duration(n.random.Int64N(int64(swizzleStep))))
		}
	}
	step(false)
	return func() error { step(true); return nil }, nil
}}

// swizzleStep is the longest time between two steps of swizzle.
const swizzleStep = 1500 * time.Millisecond

// networkFaults are the faults of links.
var networkFaults = []fault{
	swizzle,
	{"isolate", network, true, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{Cut: true}, lan.Link{Cut: true}), nil
	}},
	{"deafen", network, true, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{}, lan.Link{Cut: true}), nil
	}},
	{"mute", network, true, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		return n.links(p, lan.Link{Cut: true}, lan.Link{}), nil
	}},
	{bridgeName, network, false, false, 20 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		directions := [][2]bool{{true, true}, {true, true}, {true, false}, {false, true}}[n.random.IntN(4)]
		return n.pair(p, n.beside(p), lan.Link{Cut: directions[0]}, lan.Link{Cut: directions[1]}), nil
	}},
	{"delay", network, false, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		slow := lan.Link{Delay: time.Duration(20+n.random.IntN(150)) * time.Millisecond}
		return n.links(p, slow, slow), nil
	}},
	{"loss", network, false, false, 8 * time.Second, func(n *nemesis, p *process) (func() error, error) {
		bad := lan.Link{Loss: .05 + .25*n.random.Float64()}
		return n.links(p, bad, bad), nil
	}},
}
