package calls

import (
	"context"
	"log/slog"

	"facet/internal/id"
	"facet/raftfsm"
)

// Groups are the Raft groups, as this node knows them.
type Groups interface {
	// Group returns the group's replica on this node.
	Group(id.Shard) (*raftfsm.Group, bool)
	// Members returns the members that may hold the group, this node or not.
	Members(id.Shard) []id.Member
}

// Peers reaches other nodes.
type Peers interface {
	Self() id.Member
	// Call has the peer's Caller.Serve carry out method. Its error is Unreachable's
	// when no answer came, or what DecodeFault makes of the peer's error.
	Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error)
}

// Caller carries out methods at the leader or at a replica of a group, here or at a
// peer, and serves them to peers. H is what a method works with on its node.
type Caller[H any] struct {
	host    H
	groups  Groups
	peers   Peers
	log     *slog.Logger
	leaders *leaders
	spread  *spread
	methods map[string]Handler[H]
}

// New returns a Caller whose methods work with host.
func New[H any](host H, groups Groups, peers Peers, log *slog.Logger, methods map[string]Handler[H]) *Caller[H] {
	return &Caller[H]{
		host: host, groups: groups, peers: peers, log: log, methods: methods,
		leaders: newLeaders(groups, peers.Self()), spread: newSpread(groups, peers.Self()),
	}
}
