package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

// foundingPause is how often a node that belongs to no cluster looks around.
const foundingPause = 200 * time.Millisecond

// founders is a node's view of who founds the cluster with it, in order.
type founders struct {
	Members []id.Member `json:"members"`
	// Done tells that the node has founded the cluster with exactly these.
	Done bool `json:"done"`
	// Joins tells that the node waits to be taken in and founds nothing: it may be on
	// the list, and does not count.
	Joins bool `json:"joins,omitempty"`
}

// found waits until this node belongs to a cluster. Meta's first configuration
// must be the same on every founder: so a node founds only with members that all
// see the same list as it does, or that have founded with a list that it is on. A
// node that finds a founded cluster waits for meta's leader to take it in.
func (n *Node) found(ctx context.Context) error {
	tick := time.NewTicker(foundingPause)
	defer tick.Stop()
	for !n.replicas.MetaGroup().HasState() {
		if err := errors.Join(n.checkSeen(), n.checkLevel(ctx)); err != nil {
			return err
		}
		if list, agreed := n.agree(ctx); agreed {
			n.log.Info("founding the cluster", "nodes", len(list))
			if err := n.replicas.MetaGroup().Bootstrap(metaServers(list)); err != nil {
				return fmt.Errorf("found the cluster: %w", err)
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// checkSeen refuses to wait for a cluster that will not take this node in, because
// all of it that gossip shows has another model pack.
func (n *Node) checkSeen() error {
	other := ""
	for _, m := range n.gossip.Members() {
		switch {
		case m.Cluster.IsZero() || m.Member == n.member:
		case m.Pack == n.packHint():
			return nil
		default:
			other = m.Pack
		}
	}
	if other == "" {
		return nil
	}
	return otherPack(other, n.cfg.Pack)
}

// founders gives this node's own view.
func (n *Node) founders() founders {
	if n.replicas.MetaGroup().HasState() {
		return founders{Members: n.replicas.Members(id.Meta), Done: true}
	}
	view := founders{Joins: n.cfg.Expect == 0}
	for _, m := range n.gossip.Members() {
		if !m.Cluster.IsZero() {
			return founders{} // there is a cluster: its leader takes this node in
		}
		if m.Pack == n.packHint() {
			view.Members = append(view.Members, m.Member)
		}
	}
	slices.Sort(view.Members)
	return view
}

// agree asks the other founders for their view and tells whether it is this
// node's, too. Nodes that only join may have come before the cluster was founded.
func (n *Node) agree(ctx context.Context) ([]id.Member, bool) {
	own := n.founders()
	var list []id.Member
	for _, m := range own.Members {
		if m == n.member {
			list = append(list, m)
			continue
		}
		theirs, err := n.askFounders(ctx, m)
		if err != nil {
			return nil, false
		}
		if theirs.Done && len(theirs.Members) == n.cfg.Expect && slices.Contains(theirs.Members, n.member) {
			slices.Sort(theirs.Members)
			return theirs.Members, true
		}
		if theirs.Joins {
			continue
		}
		if theirs.Done || !slices.Equal(theirs.Members, own.Members) {
			return nil, false
		}
		list = append(list, m)
	}
	return list, n.cfg.Expect > 0 && len(list) == n.cfg.Expect
}

func (n *Node) askFounders(ctx context.Context, m id.Member) (founders, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var view founders
	body, err := n.peers.Call(ctx, m, methodFounders, nil)
	if err != nil {
		return view, err
	}
	if err := json.Unmarshal(body, &view); err != nil {
		return view, fmt.Errorf("read a founder's view: %w", err)
	}
	return view, nil
}

// metaServers makes meta's first configuration: up to votersMax voters, the other
// founders receive it.
func metaServers(list []id.Member) []raftfsm.Server {
	servers := make([]raftfsm.Server, 0, len(list))
	for i, m := range list {
		servers = append(servers, raftfsm.Server{Member: m, Voter: i < votersMax})
	}
	return servers
}
