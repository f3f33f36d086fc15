package calls

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm"
)

// Groups finds the Raft groups that this node knows.
type Groups interface {
	// Group returns the group's replica on this node.
	Group(id.Shard) (*raftfsm.Group, bool)
	// Members returns the members that may have a replica of the group, this node
	// included.
	Members(id.Shard) []id.Member
	// Out reports whether this node's replica of the group is out of service.
	Out(id.Shard) bool
}

// Peers reaches other nodes.
type Peers interface {
	Self() id.Member
	// Call makes the peer's Caller.Serve carry out method. It returns an error of
	// Unreachable when no answer came, and otherwise the decoded error of the peer
	// (DecodeFault).
	Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error)
}
