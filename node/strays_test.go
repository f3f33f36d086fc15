package node_test

import (
	"context"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/raftfsm"
)

// A leader with an older map has changed a group's members after meta saw the move end. The
// members become those of the map again.
func TestGroupReturnsToItsMap(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 4}, func(t *testing.T, cluster *nodetest.Cluster) {
		const number = id.Shard(1)
		at, _ := cluster.Nodes[0].Node.ShardMap().Shard(number)
		var leader *nodetest.Member
		var stranger id.Member
		for _, m := range cluster.Nodes {
			switch slices.Index(at.Voters, m.Node.Member()) {
			case 0:
				leader = m
			case -1:
				stranger = m.Node.Member()
			}
		}
		eventually(t, leader.Node, "the first voter leads", func(wire.Status) bool { return leader.Node.Leads(number) })
		group, _ := leader.Node.Group(number)
		for what, change := range map[string]func(context.Context, uint64) error{
			"a voter that was removed votes again": func(ctx context.Context, index uint64) error { return group.Remove(ctx, at.Voters[2], index) },
			"a member that was added leaves":       func(ctx context.Context, index uint64) error { return group.AddNonvoter(ctx, stranger, index) },
		} {
			_, index, err := group.Servers()
			if err != nil {
				t.Fatal(err)
			}
			if err := change(t.Context(), index); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			eventually(t, leader.Node, what, func(wire.Status) bool {
				servers, now, err := group.Servers()
				return err == nil && now > index && len(servers) == len(at.Voters) && !slices.ContainsFunc(servers, func(s raftfsm.Server) bool {
					return !s.Voter || !slices.Contains(at.Voters, s.Member)
				})
			})
		}
	})
}
