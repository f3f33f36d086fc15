package placement

import (
	"context"
	"errors"
	"math/rand/v2"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// membershipAsked is the most members that a node asks whether it was removed.
const membershipAsked = 3

// errRemoved is returned when an operator has removed this node from its cluster.
var errRemoved = errors.New("this node was removed from its cluster, for good: with an empty data directory it can join as a new one")

// membershipAnswer reports whether a node was removed. Removal is final, so one such answer
// is enough.
type membershipAnswer struct {
	Removed bool `json:"removed"`
	// Level is the cluster's level.
	Level uint32 `json:"level,omitempty"`
}

// CheckMembership returns an error if this node was removed. It asks other nodes only while
// this node hears no leader of meta, because a removed node hears none.
func (p *Placement) CheckMembership(ctx context.Context) error {
	if _, led := p.cfg.Replicas.MetaGroup().Leader(); led {
		return nil
	}
	if p.isRemoved(p.cfg.Node) {
		return errRemoved
	}
	members := p.cfg.Replicas.Members(id.Meta) // gossip shows no member to a removed node that starts
	for _, m := range p.cfg.Gossip.Members() {
		members = append(members, m.Member)
	}
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	asked := 0
	for _, m := range members {
		if m == p.cfg.Self {
			continue
		}
		if asked++; asked > membershipAsked {
			break
		}
		if theirs, err := p.askMembership(ctx, m); err == nil && theirs.Removed {
			return errRemoved
		}
	}
	return nil
}

// membershipOf answers askMembership.
func (p *Placement) membershipOf(_ context.Context, who id.Member) (membershipAnswer, error) {
	of, err := who.Node()
	return membershipAnswer{Removed: p.isRemoved(of), Level: p.cfg.Replicas.Meta().Level()}, err
}

// isRemoved reports whether this node's replica of meta records a node as removed.
func (p *Placement) isRemoved(who id.Node) bool {
	r, known := p.cfg.Replicas.Meta().Node(who)
	return known && r.State == metafsm.NodeRemoved
}
