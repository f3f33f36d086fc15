package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"facet/node"
	"facet/node/nodetest"
	"facet/node/transport/memnet"
	"facet/node/wire"
)

// assault is one kind of attack on a world.
type assault struct {
	name string
	// nodes is the number of nodes that the world must have. grave takes nodes out
	// of service, but never a majority. lone comes alone, rare rarely.
	nodes             int
	grave, lone, rare bool
	most              time.Duration
	begin             func(s *attackedWorld, victim int) (undo func())
}

// stopPatience is how long a stopping node has for its requests.
const stopPatience = 5 * time.Second

// attacks lists all kinds of attack.
var attacks = []assault{
	{name: "isolate", grave: true, most: 8 * time.Second, begin: func(s *attackedWorld, v int) func() {
		return s.links(v, memnet.Link{Cut: true}, memnet.Link{Cut: true})
	}},
	{name: "mute", grave: true, most: 8 * time.Second, begin: func(s *attackedWorld, v int) func() {
		return s.links(v, memnet.Link{Cut: true}, memnet.Link{})
	}},
	{name: "deafen", grave: true, most: 8 * time.Second, begin: func(s *attackedWorld, v int) func() {
		return s.links(v, memnet.Link{}, memnet.Link{Cut: true})
	}},
	{name: "bridge", most: 8 * time.Second, begin: func(s *attackedWorld, v int) func() {
		a, b := s.host(v), s.host(v+1)
		return s.effect(map[[2]string]memnet.Link{{a, b}: {Cut: true}, {b, a}: {Cut: s.random.IntN(2) > 0}})
	}},
	{name: "delay", most: 6 * time.Second, begin: func(s *attackedWorld, v int) func() {
		slow := memnet.Link{Delay: time.Duration(10+s.random.IntN(150)) * time.Millisecond}
		return s.links(v, slow, slow)
	}},
	{name: "gossip lost", most: 15 * time.Second, begin: func(s *attackedWorld, v int) func() { // streams still work
		return s.links(v, memnet.Link{Loss: 1}, memnet.Link{Loss: 1})
	}},
	{name: "swizzle", grave: true, lone: true, most: 5 * time.Second, begin: swizzle},
	{name: "stop", grave: true, most: 5 * time.Second, begin: func(s *attackedWorld, v int) func() {
		s.stop(v)
		return func() { s.cluster.Restart(v) }
	}},
	{name: "kill", grave: true, most: 5 * time.Second, begin: func(s *attackedWorld, v int) func() {
		s.kill(v)
		return func() { s.cluster.Restart(v) }
	}},
	{name: "kill all", grave: true, lone: true, rare: true, most: 3 * time.Second, begin: func(s *attackedWorld, _ int) func() {
		for i := range s.cluster.Nodes {
			s.kill(i)
		}
		return func() {
			for i := range s.cluster.Nodes {
				s.cluster.Restart(i)
			}
		}
	}},
	{name: "drain", nodes: 4, grave: true, rare: true, most: 4 * time.Second, begin: func(s *attackedWorld, v int) func() {
		who := s.cluster.Nodes[v].Config.Name
		id := s.ids[v]
		s.order(id, wire.StateDraining)
		return func() {
			s.settle("the drained node "+who+" holds nothing", func(st wire.Status) bool { return holds(st, id) == 0 })
			s.order(id, wire.StateActive)
		}
	}},
	{name: "replicas", most: 6 * time.Second, rare: true, nodes: 4, begin: replicas},
	{name: "lose state", grave: true, lone: true, rare: true, most: 4 * time.Second, begin: loseState},
	{name: "roll back", grave: true, lone: true, rare: true, most: 4 * time.Second, begin: rollBack},
	{name: "duplicate", grave: true, lone: true, rare: true, most: 4 * time.Second, begin: duplicate},
}

// replicas changes the number of replicas, and back to three while other faults are over.
// One replica survives no fault for good, but none of the faults of a world is for good.
func replicas(s *attackedWorld, _ int) func() {
	number := []int{1, 5}[s.random.IntN(2)]
	s.say("%d replicas", number)
	s.orderReplicas(number)
	return func() {
		if s.random.IntN(2) > 0 { // else it changes back on the way
			s.settle("each shard has its replicas", func(st wire.Status) bool { return st.Voting[min(number, len(s.cluster.Nodes))] == st.Shards })
		}
		s.orderReplicas(3)
		s.settle("each shard has three replicas again", func(st wire.Status) bool { return st.Voting[3] == st.Shards })
	}
}

// orderReplicas sets the number of replicas by any node that accepts it.
func (s *attackedWorld) orderReplicas(number int) {
	s.t.Helper()
	s.anyNode(fmt.Sprint(number, " replicas"), func(ctx context.Context, n *node.Node) error {
		_, err := n.Admin().SetReplicas(ctx, wire.ReplicasOrder{Replicas: number, Force: true})
		return err
	})
}

func (s *attackedWorld) host(i int) string { return s.cluster.Nodes[i%len(s.cluster.Nodes)].Host }

// links changes the links between a node and all other nodes. Links of clients stay
// as they are.
func (s *attackedWorld) links(v int, from, to memnet.Link) (undo func()) {
	change := map[[2]string]memnet.Link{}
	for i := range s.cluster.Nodes {
		if i != v {
			change[[2]string{s.host(v), s.host(i)}], change[[2]string{s.host(i), s.host(v)}] = from, to
		}
	}
	return s.effect(change)
}

// effect changes links in addition to the changes of other faults.
func (s *attackedWorld) effect(change map[[2]string]memnet.Link) (undo func()) {
	s.made++
	number := s.made
	s.effects[number] = change
	s.wire(change)
	return func() {
		delete(s.effects, number)
		s.wire(change)
	}
}

// wire sets the links in change to the combination of all effects.
func (s *attackedWorld) wire(change map[[2]string]memnet.Link) {
	for pair := range change {
		var l memnet.Link
		for _, number := range slices.Sorted(maps.Keys(s.effects)) {
			e := s.effects[number][pair]
			l = memnet.Link{Cut: l.Cut || e.Cut, Delay: max(l.Delay, e.Delay), Loss: max(l.Loss, e.Loss)}
		}
		s.net.Set(pair[0], pair[1], l)
	}
}

// swizzle cuts off all nodes one after the other, and heals them in another order.
func swizzle(s *attackedWorld, _ int) func() {
	undo := make([]func(), len(s.cluster.Nodes))
	step := func() { time.Sleep(time.Duration(s.random.Int64N(int64(1500 * time.Millisecond)))) }
	for _, i := range s.random.Perm(len(undo)) {
		undo[i] = s.links(i, memnet.Link{Cut: true}, memnet.Link{Cut: true})
		step()
	}
	return func() {
		for _, i := range s.random.Perm(len(undo)) {
			undo[i]()
			step()
		}
	}
}

// stop ends a node in the way of SIGTERM. Requests that can't be answered may keep
// it from ending in order.
func (s *attackedWorld) stop(v int) {
	m := s.cluster.Nodes[v]
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := m.Node.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		s.t.Errorf("stop node %s: %v", m.Config.Name, err)
	}
	m.Node = nil
}

// kill ends a node in the way of SIGKILL: nothing reaches the other nodes any more,
// and its files stay as they are at this instant. No virtual time passes while the
// files are copied, so nothing is written meanwhile.
func (s *attackedWorld) kill(v int) {
	m := s.cluster.Nodes[v]
	silence := map[[2]string]memnet.Link{}
	for _, other := range append(s.hosts(), nodetest.ClientHost) {
		if other != m.Host {
			silence[[2]string{m.Host, other}], silence[[2]string{other, m.Host}] = memnet.Link{Cut: true}, memnet.Link{Cut: true}
		}
	}
	undo := s.effect(silence)
	time.Sleep(1237 * time.Microsecond) // writes in progress are cut here
	kept := m.Config.Dir + ".kept"
	if err := os.CopyFS(kept, os.DirFS(m.Config.Dir)); err != nil {
		s.t.Errorf("keep the files of a killed node: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = m.Node.Close(ctx) // it may not end in order
	m.Node = nil
	if err := errors.Join(refill(m.Config.Dir, kept), os.Remove(kept)); err != nil {
		s.t.Errorf("replace the files of a killed node: %v", err)
	}
	undo()
}

// refill moves the files of the folder from into dir, in place of dir's own. The folder dir
// stays: another one would be a copy of the node's (node/holder).
func refill(dir, from string) error {
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.RemoveAll(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	next, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range next {
		if err := os.Rename(filepath.Join(from, f.Name()), filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *attackedWorld) hosts() (list []string) {
	for _, m := range s.cluster.Nodes {
		list = append(list, m.Host)
	}
	return list
}
