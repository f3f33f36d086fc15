package node

import (
	"cmp"
	"context"
	"slices"

	"facet/internal/id"
	"facet/node/placement"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
)

// Plan tells the moves by which the cluster will balance itself: what its planner
// makes of the present map and of the nodes that are there. It changes nothing.
func (n *Node) Plan(ctx context.Context) (wire.Plan, error) {
	if err := n.router.SyncMeta(ctx); err != nil {
		return wire.Plan{}, err
	}
	cluster, _ := n.replicas.Meta().Cluster()
	now := n.replicas.Meta().Shards()
	seats, heirs := n.placement.Seats()
	plan := metafsm.Replan(now.Shards, seats, cluster.WantedReplicas(), heirs)
	p := wire.Plan{Steps: planSteps(now.Shards, plan), Moves: n.Status(ctx).Moves, AtOnce: placement.MovesMax}
	names := n.names()
	for _, r := range n.replicas.Meta().Nodes() {
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
		p.Shards = append(p.Shards, share)
	}
	slices.SortFunc(p.Shards, func(a, b wire.Share) int { return cmp.Compare(a.Name+a.Node.String(), b.Name+b.Node.String()) })
	return p, nil
}

// planSteps gives what a plan changes of shards that are not on the move yet.
func planSteps(now, plan []metafsm.ShardVoters) []wire.PlanStep {
	steps := []wire.PlanStep{}
	for i, at := range now {
		s := wire.PlanStep{Shard: at.Shard, From: placement.Without(at.Voters, plan[i].Voters), To: placement.Without(plan[i].Voters, at.Voters)}
		if len(s.From)+len(s.To) > 0 {
			steps = append(steps, s)
		}
	}
	return steps
}

// names gives the names of nodes by their ids.
func (n *Node) names() map[id.Node]string {
	names := map[id.Node]string{}
	for _, r := range n.replicas.Meta().Nodes() {
		names[r.ID] = r.Name
	}
	return names
}
