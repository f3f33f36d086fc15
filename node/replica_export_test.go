package node

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
)

// Member returns the node's name in Raft.
func (n *Node) Member() id.Member { return n.member }

// ShardMap returns the shard map as this node has it.
func (n *Node) ShardMap() metafsm.ShardMap { return n.replicas.Meta().Shards() }

// HasCaughtUp reports whether this node counts a member among those that have caught up.
func (n *Node) HasCaughtUp(ctx context.Context, number id.Shard, m id.Member) bool {
	return n.replicas.CaughtUp(ctx, number, 0, []id.Member{m}) == 1
}

// OpenEmpty opens a replica of a group that was never bootstrapped.
func (n *Node) OpenEmpty(number id.Shard) error { return n.replicas.OpenEmpty(number) }

// RoleOf returns the role of a replica here, as the node reports it.
func (n *Node) RoleOf(number id.Shard) string {
	for _, g := range n.admin.Own().Groups {
		if g.Group == number {
			return g.Role
		}
	}
	return ""
}

// Group returns the Raft group of a shard here.
func (n *Node) Group(number id.Shard) (*raftfsm.Group, bool) { return n.replicas.Group(number) }
