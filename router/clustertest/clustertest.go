// Package clustertest has nodes without replicas, for tests of the parts of a router.
package clustertest

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// Nowhere is the groups of a node without a replica. Nodes may have replicas of each group.
type Nowhere struct{ Nodes []id.Member }

// Group finds no group.
func (Nowhere) Group(id.Shard) (*raftfsm.Group, bool) { return nil, false }

// Out reports that no replica is out of service.
func (Nowhere) Out(id.Shard) bool { return false }

// Meta returns nil.
func (Nowhere) Meta() *metafsm.Machine { return nil }

// Shard finds no shard.
func (Nowhere) Shard(id.Shard) (*shardfsm.Machine, bool) { return nil, false }

// Members returns the same nodes for each group.
func (n Nowhere) Members(id.Shard) []id.Member { return n.Nodes }

// Founded is the groups of a node that has meta only, in a cluster of nine shards.
type Founded struct {
	Nowhere
	meta *metafsm.Machine
}

// NewFounded returns the groups of such a node. Another node has the shards.
func NewFounded() Founded {
	m := metafsm.New()
	m.Apply(1, metafsm.FoundOp.Encode(metafsm.Found{Cluster: metafsm.Cluster{ID: id.Cluster{UUID: id.UUID{9}}, Shards: 9}}))
	return Founded{Nowhere{[]id.Member{"a"}}, m}
}

// Meta returns the state of meta.
func (f Founded) Meta() *metafsm.Machine { return f.meta }

// Silent is peers that answer nothing.
type Silent struct{}

// Self returns the name of this node.
func (Silent) Self() id.Member { return "self" }

// Call returns an error.
func (Silent) Call(context.Context, id.Member, string, []byte) ([]byte, error) {
	return nil, errors.New("not called")
}

// Subject returns the n-th subject of a test.
func Subject(n int) id.Subject { return id.Subject{UUID: id.UUID{byte(n >> 8), byte(n)}} }

// Event returns the n-th event of a test.
func Event(n int) id.Event { return id.Event{UUID: id.UUID{byte(n >> 8), byte(n)}} }
