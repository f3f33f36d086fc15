package sim

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/nodetest"
	"facet/node/wire"
)

// movesFor is for how long (real time) worlds with moves are run, each with the
// next seed. At least one is run.
var movesFor = flag.Duration("moves-for", 0, "real time for worlds with moves and partitions, one after the other")

// settle waits until nothing is moving and ok holds.
func (w *world) settle(what string, ok func(wire.Status) bool) {
	w.t.Helper()
	var s wire.Status
	for range 600 {
		if s = w.cluster.Nodes[0].Node.Status(w.t.Context()); len(s.Moves) == 0 && ok(s) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.t.Errorf("%s: not within five minutes: moves %+v, warnings %v", what, s.Moves, s.Warnings)
}

// holds returns the number of shards in which a node votes.
func holds(s wire.Status, who id.Node) int {
	n := 0
	for _, m := range s.Nodes {
		for _, g := range m.Groups {
			if m.ID == who && g.Group != id.Meta && g.Role != "non-voter" {
				n++
			}
		}
	}
	return n
}

// order sends a change of a node's state to any node that accepts it.
func (w *world) order(who id.Node, state string) {
	w.t.Helper()
	w.carryOut(wire.Order{Node: who, State: state})
}

// carryOut sends an order to any node that accepts it.
func (w *world) carryOut(o wire.Order) {
	w.t.Helper()
	w.anyNode(fmt.Sprintf("node %s is %s", o.Node, o.State), func(ctx context.Context, n *node.Node) error {
		return n.Admin().SetNodeState(ctx, o)
	})
}

// anyNode sends an order to one node after the other until one accepts it.
func (w *world) anyNode(what string, order func(context.Context, *node.Node) error) {
	w.t.Helper()
	var err error
	for range 100 {
		for _, m := range w.cluster.Nodes {
			if m.Node == nil {
				continue
			}
			ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
			err = order(ctx, m.Node)
			cancel()
			if err == nil {
				return
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	w.t.Errorf("no node accepts the order %q: %v", what, err)
}

// moving runs one world and returns its number of faults. Four clients register, a
// fourth node joins, and two nodes are drained and taken back by a seeded plan,
// with partitions meanwhile.
func moving(t *testing.T, seed uint64) (faults int) {
	nodetest.Bubble(t, seed, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newWorldOf(t, nodetest.Options{Nodes: 4, Founders: 3}, 10_000)
		w.cluster.Restart(3)
		w.cluster.WaitReady()
		e := &enrolled{subjects: map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for worker := range 4 {
			workers.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					w.register(context.WithoutCancel(ctx), e, worker, n)
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
		for range 3 {
			leaving := w.cluster.Nodes[r.IntN(4)].Node.ID()
			w.order(leaving, wire.StateDraining)
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
			w.cut(r.IntN(4)) // during the moves
			time.Sleep(time.Duration(1000+r.IntN(9000)) * time.Millisecond)
			w.net.Heal()
			w.settle("the drained node holds nothing", func(s wire.Status) bool { return holds(s, leaving) == 0 })
			w.order(leaving, wire.StateActive)
			time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
			w.cut(r.IntN(4))
			time.Sleep(time.Duration(1000+r.IntN(9000)) * time.Millisecond)
			w.net.Heal()
			w.settle("the node has its share again", func(s wire.Status) bool { return holds(s, leaving) == 3 })
			faults += 4
		}
		stop()
		workers.Wait()
		w.check(e)
		if len(e.subjects) < 100 {
			t.Errorf("only %d registrations: the cluster hardly served", len(e.subjects))
		}
		t.Logf("seed %d: %d persons in %d tries, %d faults", seed, len(e.subjects), e.tries, faults)
	})
	return faults
}

// There are partitions meanwhile.
func TestNothingIsLostWhileNodesComeAndGo(t *testing.T) {
	faults, worlds := 0, 0
	for began := time.Now(); worlds == 0 || time.Since(began) < *movesFor && !t.Failed(); worlds++ {
		faults += moving(t, uint64(worlds))
	}
	t.Logf("%d worlds, %d faults", worlds, faults)
}
