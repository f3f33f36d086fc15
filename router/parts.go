package router

import (
	"context"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

// Extractor turns an image into faces, largest first. *engine.Engine is one.
type Extractor interface {
	// Extract finds all faces.
	Extract(ctx context.Context, image []byte) ([]engine.Face, error)
	// ExtractLarge finds the largest face and those of at least share of its side,
	// which is quicker. A face has the same template either way.
	ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error)
}

// Groups finds the Raft groups that this node knows.
type Groups interface {
	// Group returns this node's replica of the group.
	Group(id.Shard) (*raftfsm.Group, bool)
	// Meta returns the state machine of meta. Every node has one.
	Meta() *metafsm.Machine
	// Shard returns the state machine of this node's replica of the shard.
	Shard(id.Shard) (*shardfsm.Machine, bool)
	// Members returns the members that may have a replica of the group, this node
	// included.
	Members(id.Shard) []id.Member
	// Out reports whether this node's replica of the group is out of service.
	Out(id.Shard) bool
}

// Peers reaches other nodes.
type Peers = calls.Peers

// Meter receives the times of the parts of a search, and counts hedges. Its methods must be quick.
type Meter interface {
	// Searched receives the times of the three stages of one search.
	Searched(extract, shards, merge time.Duration)
	// SearchedShard receives the part of one shard, on the replica that answered:
	// the number of active events there, and the time.
	SearchedShard(rows int, took time.Duration)
	calls.Meter
}

// Clock compares this node's clock with those of the other nodes.
type Clock interface {
	// Now returns the time for new writes. If most nodes contradict this node, it is
	// theirs.
	Now() time.Time
	// Trusted returns this node's time, and whether a majority of the nodes has about
	// the same.
	Trusted() (now time.Time, agrees bool)
}

// Memory reports whether this node has memory for more events.
type Memory interface {
	// Full returns true when there is no memory left. It is called often and must
	// be quick.
	Full() bool
}
