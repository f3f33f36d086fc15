package node

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
)

// Member gives the node's name in Raft.
func (n *Node) Member() id.Member { return n.member }

// HasCaughtUp tells whether this node counts a member among those that have caught up.
func (n *Node) HasCaughtUp(ctx context.Context, number id.Shard, m id.Member) bool {
	return n.caughtUp(ctx, number, 0, []id.Member{m}) == 1
}

// OpenEmpty opens a replica of a group that nobody has founded.
func (n *Node) OpenEmpty(number id.Shard) error {
	state := shardfsm.New(n.groups.table, n.groups.arena)
	group, err := n.groups.open(number, state)
	if err != nil {
		return err
	}
	n.groups.mu.Lock()
	defer n.groups.mu.Unlock()
	n.groups.shards[number] = hosted{group, state}
	return nil
}

// RoleOf gives the role that this node's account of itself says of a replica.
func (n *Node) RoleOf(number id.Shard) string {
	for _, g := range n.ownStatus().Groups {
		if g.Group == number {
			return g.Role
		}
	}
	return ""
}
