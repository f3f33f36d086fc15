package node

import (
	"facet/internal/id"
	"facet/node/replicas"
)

// RecordedLevels returns the level in each node's record.
func (n *Node) RecordedLevels() []uint32 {
	var list []uint32
	for _, r := range n.replicas.Meta().Nodes() {
		list = append(list, r.Knows())
	}
	return list
}

// SnapshotHere makes a group's replica here write a snapshot.
func (n *Node) SnapshotHere(number id.Shard) error {
	g, ok := n.replicas.Group(number)
	if !ok {
		return replicas.NotHere(number)
	}
	return g.Snapshot()
}

// NotedLevel returns the cluster's level, once this node's data directory says so.
func (n *Node) NotedLevel() uint32 { return n.replicas.NotedLevel() }
