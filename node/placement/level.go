package placement

import (
	"context"
	"slices"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/node/peer"
	"facet/raftfsm/metafsm"
)

// RecordLevel returns the form of a level in records and gossip, where 0 stands for 1.
func RecordLevel(level uint32) uint32 {
	if level <= 1 {
		return 0
	}
	return level
}

// raiseLevel raises the cluster's level to the highest one that every member of meta and
// every recorded node knows. It runs on meta's leader.
func (p *Placement) raiseLevel(ctx context.Context) error {
	nodes := p.cfg.Replicas.Meta().Nodes()
	lowest := p.cfg.Level
	for _, m := range p.cfg.Replicas.Members(id.Meta) {
		i := slices.IndexFunc(nodes, func(r metafsm.Node) bool { return r.Member == m })
		if i < 0 {
			return nil // it has no record yet that states its level
		}
		lowest = min(lowest, nodes[i].Knows())
	}
	for _, r := range nodes {
		if r.State != metafsm.NodeRemoved {
			lowest = min(lowest, r.Knows())
		}
	}
	if lowest <= p.cfg.Replicas.Meta().Level() {
		return nil
	}
	p.cfg.Log.InfoContext(ctx, "all nodes know a higher level: the cluster uses it from now on, and older versions can't join any more", "level", lowest)
	return p.propose(ctx, metafsm.RaiseLevelOp.Encode(metafsm.RaiseLevel{Level: lowest}))
}

// checkLevel returns an error if the cluster that gossip shows has a higher level than this
// software knows. Such a cluster never takes this node in.
func (p *Placement) checkLevel(ctx context.Context) error {
	asked := 0
	for _, m := range p.cfg.Gossip.Members() {
		if m.Cluster.IsZero() || m.Member == p.cfg.Self {
			continue
		}
		if asked++; asked > membershipAsked {
			break
		}
		theirs, err := p.askMembership(ctx, m.Member)
		if err == nil && theirs.Level > p.cfg.Level {
			return datadir.TooNew(theirs.Level, p.cfg.Level)
		}
	}
	return nil
}

// askMembership asks a member whether this node was removed.
func (p *Placement) askMembership(ctx context.Context, of id.Member) (theirs membershipAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	return theirs, p.cfg.Peers.Ask(ctx, of, MethodMembership, p.cfg.Self, &theirs)
}
