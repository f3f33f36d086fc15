package sim

import (
	"context"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/node"
	"facet/node/wire"
)

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
