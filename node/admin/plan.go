package admin

import (
	"cmp"
	"context"
	"slices"

	"facet/internal/id"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// Plan returns the moves by which the cluster will balance itself, by the present map and
// the nodes that are present. It changes nothing.
func (p *Port) Plan(ctx context.Context) (wire.Plan, error) {
	if err := p.cfg.Router.SyncMeta(ctx); err != nil {
		return wire.Plan{}, err
	}
	cluster, _ := p.cfg.Replicas.Meta().Cluster()
	now := p.cfg.Replicas.Meta().Shards()
	seats, heirs := p.cfg.Placement.Seats()
	plan := metafsm.Replan(now.Shards, seats, cluster.WantedReplicas(), heirs)
	out := wire.Plan{Steps: p.cfg.Placement.Steps(now.Shards, plan), Moves: p.Status(ctx).Moves, AtOnce: p.cfg.Placement.AtOnce()}
	names := p.names()
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		if r.State == metafsm.NodeRemoved {
			continue
		}
		share := wire.Share{Node: r.ID, Name: names[r.ID]}
		for i, at := range now.Shards {
			if slices.Contains(at.Holders(), r.Member) {
				share.Now++
			}
			if slices.Contains(plan[i].Voters, r.Member) {
				share.Then++
			}
			if plan[i].Voters[0] == r.Member {
				share.LeadsThen++
			}
		}
		out.Shards = append(out.Shards, share)
	}
	slices.SortFunc(out.Shards, func(a, b wire.Share) int { return cmp.Compare(a.Name+a.Node.String(), b.Name+b.Node.String()) })
	return out, nil
}

// names returns the recorded name of each node.
func (p *Port) names() map[id.Node]string {
	names := map[id.Node]string{}
	for _, r := range p.cfg.Replicas.Meta().Nodes() {
		names[r.ID] = r.Name
	}
	return names
}
