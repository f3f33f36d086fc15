package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/peer"
	"facet/raftfsm"
)

// foundingInterval is how often a node that belongs to no cluster looks for one.
const foundingInterval = 200 * time.Millisecond

// founders is the list of members with which a node will found the cluster, ascending.
type founders struct {
	Members []id.Member `json:"members"`
	// Done reports whether the node has founded the cluster with exactly these members.
	Done bool `json:"done"`
	// Joins reports whether the node only joins a cluster. Such a node may be on the lists
	// of others and does not count as a founder.
	Joins bool `json:"joins,omitempty"`
}

// Found waits until this node belongs to a cluster. All founders must bootstrap meta with
// the same configuration. So a node founds only when every other founder has the same list,
// or has already founded with a list that names this node. If a cluster exists, the node
// waits until meta's leader takes it in. A founder without a vote bootstraps nothing: it waits
// for the log of meta.
func (p *Placement) Found(ctx context.Context) error {
	tick := time.NewTicker(foundingInterval)
	defer tick.Stop()
	for !p.cfg.Replicas.MetaGroup().HasState() {
		if err := errors.Join(p.checkSeen(), p.checkLevel(ctx), p.checkFounders()); err != nil {
			return err
		}
		list, agreed := p.agree(ctx)
		servers := metaServers(list)
		if agreed && slices.Contains(servers, raftfsm.Server{Member: p.cfg.Self, Voter: true}) {
			p.cfg.Log.InfoContext(ctx, "founding the cluster", "nodes", len(servers))
			if err := p.cfg.Replicas.MetaGroup().Bootstrap(servers); err != nil {
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

// checkSeen returns an error if every node of the cluster that gossip shows has another
// model pack. Such a cluster never takes this node in.
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
	return &PackError{other, p.cfg.Pack}
}

// founders returns this node's own list.
func (p *Placement) founders() founders {
	if p.cfg.Replicas.MetaGroup().HasState() {
		return founders{Members: p.cfg.Replicas.Members(id.Meta), Done: true}
	}
	view := founders{Joins: p.cfg.Expect == 0}
	for _, m := range p.cfg.Gossip.Members() {
		if !m.Cluster.IsZero() {
			return founders{} // the leader of that cluster takes this node in
		}
		if m.Pack == PackHint(p.cfg.Pack) {
			view.Members = append(view.Members, m.Member)
		}
	}
	slices.Sort(view.Members)
	return view
}

// agree asks the other founders for their lists. It returns the common list and whether all
// agree. Nodes that only join do not count.
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
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	var view founders
	return view, p.cfg.Peers.Ask(ctx, m, MethodFounders, nil, &view)
}

// metaServers returns meta's first configuration: the first VotersMax founders vote, the
// others only receive the log.
func metaServers(list []id.Member) []raftfsm.Server {
	servers := make([]raftfsm.Server, 0, len(list))
	for i, m := range list {
		servers = append(servers, raftfsm.Server{Member: m, Voter: i < VotersMax})
	}
	return servers
}
