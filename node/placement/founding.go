package placement

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

// Found waits until this node belongs to a cluster. Meta's first configuration
// must be the same on every founder: so a node founds only with members that all
// see the same list as it does, or that have founded with a list that it is on. A
// node that finds a founded cluster waits for meta's leader to take it in.
func (p *Placement) Found(ctx context.Context) error {
	tick := time.NewTicker(foundingPause)
	defer tick.Stop()
	for !p.cfg.Replicas.MetaGroup().HasState() {
		if err := errors.Join(p.checkSeen(), p.checkLevel(ctx)); err != nil {
			return err
		}
		if list, agreed := p.agree(ctx); agreed {
			p.cfg.Log.Info("founding the cluster", "nodes", len(list))
			if err := p.cfg.Replicas.MetaGroup().Bootstrap(metaServers(list)); err != nil {
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
func (p *Placement) checkSeen() error {
	other := ""
	for _, m := range p.cfg.Gossip.Members() {
		switch {
		case m.Cluster.IsZero() || m.Member == p.cfg.Self:
		case m.Pack == PackHint(p.cfg.Pack):
			return nil
		default:
			other = m.Pack
		}
	}
	if other == "" {
		return nil
	}
	return otherPack(other, p.cfg.Pack)
}

// founders returns this node's own view.
func (p *Placement) founders() founders {
	if p.cfg.Replicas.MetaGroup().HasState() {
		return founders{Members: p.cfg.Replicas.Members(id.Meta), Done: true}
	}
	view := founders{Joins: p.cfg.Expect == 0}
	for _, m := range p.cfg.Gossip.Members() {
		if !m.Cluster.IsZero() {
			return founders{} // there is a cluster: its leader takes this node in
		}
		if m.Pack == PackHint(p.cfg.Pack) {
			view.Members = append(view.Members, m.Member)
		}
	}
	slices.Sort(view.Members)
	return view
}

// agree asks the other founders for their view and tells whether it is this
// node's, too. Nodes that only join may have come before the cluster was founded.
func (p *Placement) agree(ctx context.Context) ([]id.Member, bool) {
	own := p.founders()
	var list []id.Member
	for _, m := range own.Members {
		if m == p.cfg.Self {
			list = append(list, m)
			continue
		}
		theirs, err := p.askFounders(ctx, m)
		if err != nil {
			return nil, false
		}
		if theirs.Done && len(theirs.Members) == p.cfg.Expect && slices.Contains(theirs.Members, p.cfg.Self) {
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
	return list, p.cfg.Expect > 0 && len(list) == p.cfg.Expect
}

func (p *Placement) askFounders(ctx context.Context, m id.Member) (founders, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var view founders
	return view, p.cfg.Peers.Ask(ctx, m, MethodFounders, nil, &view)
}

// metaServers makes meta's first configuration: up to VotersMax voters, the other
// founders receive it.
func metaServers(list []id.Member) []raftfsm.Server {
	servers := make([]raftfsm.Server, 0, len(list))
	for i, m := range list {
		servers = append(servers, raftfsm.Server{Member: m, Voter: i < VotersMax})
	}
	return servers
}

// serveFounders answers askFounders.
func (p *Placement) serveFounders(context.Context, []byte) ([]byte, error) {
	return json.Marshal(p.founders())
}
