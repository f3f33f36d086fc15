package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/raftfsm/metafsm"
)

// level is what this node knows (metafsm.Level).
func (c Config) level() uint32 {
	if c.Level == 0 {
		return metafsm.Level
	}
	return c.Level
}

// recordLevel is a level as records have it: 0 for what all nodes know.
func recordLevel(level uint32) uint32 {
	if level <= 1 {
		return 0
	}
	return level
}

// raiseLevel lets the cluster use new forms once every member of meta, whether it
// votes or has just been taken in, has said that it knows them. It runs on meta's
// leader.
func (n *Node) raiseLevel(ctx context.Context) error {
	nodes := n.replicas.Meta().Nodes()
	lowest := n.cfg.level()
	for _, m := range n.replicas.Members(id.Meta) {
		i := slices.IndexFunc(nodes, func(r metafsm.Node) bool { return r.Member == m })
		if i < 0 {
			return nil // it has not said yet what it knows
		}
		lowest = min(lowest, nodes[i].Knows())
	}
	for _, r := range nodes {
		if r.State != metafsm.NodeRemoved {
			lowest = min(lowest, r.Knows())
		}
	}
	if lowest <= n.replicas.Meta().Level() {
		return nil
	}
	n.log.Info("all nodes know newer forms: the cluster uses them from now on, and older versions can't join any more", "level", lowest)
	return n.propose(ctx, metafsm.RaiseLevel{Level: lowest})
}

// checkLevel refuses to wait for a cluster that will not take this node in, because
// it uses forms that this software does not know.
func (n *Node) checkLevel(ctx context.Context) error {
	asked := 0
	for _, m := range n.gossip.Members() {
		if m.Cluster.IsZero() || m.Member == n.member {
			continue
		}
		if asked++; asked > standingAsked {
			break
		}
		theirs, err := n.askStanding(ctx, m.Member)
		if err == nil && theirs.Level > n.cfg.level() {
			return datadir.TooNew(theirs.Level, n.cfg.level())
		}
	}
	return nil
}

// askStanding asks a member what it knows of this node.
func (n *Node) askStanding(ctx context.Context, of id.Member) (theirs standing, err error) {
	body, err := json.Marshal(n.member)
	if err != nil {
		return theirs, fmt.Errorf("ask for this node's standing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, standingTimeout)
	defer cancel()
	answer, err := n.peers.Call(ctx, of, methodStanding, body)
	if err != nil {
		return theirs, err
	}
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return theirs, fmt.Errorf("read this node's standing: %w", err)
	}
	return theirs, nil
}
