package placement

import (
	"context"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/node/datadir"
	"facet/node/peer"
	"facet/raftfsm/metafsm"
)

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

// checkLevel returns an error if this software does not read the level of the cluster that gossip
// shows. A cluster with a higher level never takes this node in; one with a level below
// metafsm.LevelFirst would.
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
		switch {
		case err != nil:
		case theirs.Level > p.cfg.Level:
			return datadir.TooNew(theirs.Level, p.cfg.Level)
		case theirs.Level < metafsm.LevelFirst:
			return fmt.Errorf("%w: the cluster of %s has level %d, and this version reads level %d and newer: a node of facet 0.3.1 can join it, "+
				"and this version founds a new cluster", metafsm.ErrOldLevel, m.PublicURL, max(1, theirs.Level), metafsm.LevelFirst)
		}
	}
	return nil
}

// checkFounders returns an error if a node that would found the cluster with this one knows only
// levels below metafsm.LevelFirst.
func (p *Placement) checkFounders() (err error) {
	for _, m := range p.cfg.Gossip.Members() {
		switch {
		case p.cfg.Expect == 0 || !m.Cluster.IsZero():
			return nil // it joins a cluster
		case m.Level < metafsm.LevelFirst && m.Pack == PackHint(p.cfg.Pack) && m.Member != p.cfg.Self:
			err = fmt.Errorf("%w: %s runs facet %s: start facet 0.4.0 or newer on every founder, with a new data directory",
				metafsm.ErrOldLevel, m.PublicURL, m.Version)
		}
	}
	return err
}

// askMembership asks a member whether this node was removed.
func (p *Placement) askMembership(ctx context.Context, of id.Member) (theirs membershipAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, peer.AnswerTimeout)
	defer cancel()
	return theirs, p.cfg.Peers.Ask(ctx, of, MethodMembership, p.cfg.Self, &theirs)
}
