package placement

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/metafsm"
)

const (
	// standingAsked is how many members a node asks whether it still belongs to them.
	standingAsked = 3
	// standingTimeout bounds one such question.
	standingTimeout = time.Second
)

// errRemoved says that operators took this node out of its cluster.
var errRemoved = errors.New("this node was removed from its cluster, for good: with an empty data directory it can join as a new one")

// standing is what a node says of another: removal is final, so one that knows of it
// is enough.
type standing struct {
	Removed bool `json:"removed"`
	// Level is the cluster's.
	Level uint32 `json:"level,omitempty"`
}

// CheckStanding finds out whether this node was removed. It asks others only where
// meta has no leader that this node hears, as a removed node does not.
func (p *Placement) CheckStanding(ctx context.Context) error {
	if _, led := p.cfg.Replicas.MetaGroup().Leader(); led || mutant.RemovedStays {
		return nil
	}
	if p.isRemoved(p.cfg.Node) {
		return errRemoved
	}
	members := p.cfg.Replicas.Members(id.Meta) // gossip shows nobody to a removed node that starts
	for _, m := range p.cfg.Gossip.Members() {
		members = append(members, m.Member)
	}
	rand.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	asked := 0
	for _, m := range members {
		if m == p.cfg.Self {
			continue
		}
		if asked++; asked > standingAsked {
			break
		}
		if theirs, err := p.askStanding(ctx, m); err == nil && theirs.Removed {
			return errRemoved
		}
	}
	return nil
}

// serveStanding answers CheckStanding.
func (p *Placement) serveStanding(_ context.Context, body []byte) ([]byte, error) {
	var who id.Member
	if err := json.Unmarshal(body, &who); err != nil {
		return nil, fmt.Errorf("read who asks for its standing: %w", err)
	}
	of, err := who.Node()
	if err != nil {
		return nil, fmt.Errorf("read who asks for its standing: %w", err)
	}
	return json.Marshal(standing{Removed: p.isRemoved(of), Level: p.cfg.Replicas.Meta().Level()})
}

// isRemoved reports whether a node was removed, as far as this one knows.
func (p *Placement) isRemoved(who id.Node) bool {
	r, known := p.cfg.Replicas.Meta().Node(who)
	return known && r.State == metafsm.NodeRemoved
}
