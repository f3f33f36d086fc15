package placement

import (
	"context"
	"slices"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/raftfsm/metafsm"
)

// RecordLevel returns a level as records have it: 0 for what all nodes know.
func RecordLevel(level uint32) uint32 {
	if level <= 1 {
		return 0
	}
	return level
}

// raiseLevel lets the cluster use new forms once every member of meta, whether it
// votes or has just been taken in, has said that it knows them. It runs on meta's
// leader.
func (p *Placement) raiseLevel(ctx context.Context) error {
	nodes := p.cfg.Replicas.Meta().Nodes()
	lowest := p.cfg.Level
	for _, m := range p.cfg.Replicas.Members(id.Meta) {
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
	if lowest <= p.cfg.Replicas.Meta().Level() {
		return nil
	}
	p.cfg.Log.Info("all nodes know newer forms: the cluster uses them from now on, and older versions can't join any more", "level", lowest)
	return p.propose(ctx, metafsm.RaiseLevelOp.Encode(metafsm.RaiseLevel{Level: lowest}))
}

// checkLevel refuses to wait for a cluster that will not take this node in, because
// it uses forms that this software does not know.
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

// askMembership asks a member what it knows of this node.
func (p *Placement) askMembership(ctx context.Context, of id.Member) (theirs membershipAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, membershipTimeout)
	defer cancel()
	return theirs, p.cfg.Peers.Ask(ctx, of, MethodMembership, p.cfg.Self, &theirs)
}
