package node

import "facet/internal/id"

// StateLost returns how many replicas and nodes this node knows to have lost state.
func (n *Node) StateLost() int { return n.detector.Count() }

// KnownIndex returns the highest index that this node knows another member to have.
func (n *Node) KnownIndex(m id.Member, number id.Shard) uint64 {
	k, _ := n.marks.Marks(number).Known(m)
	return k.Index
}

// KnownStart returns the last start of another member that this node knows.
func (n *Node) KnownStart(m id.Member) uint64 { return n.marks.Start(m) }

// OwnStart returns the number of this node's start.
func (n *Node) OwnStart() uint64 { return n.marks.Start(n.member) }

// Accuse makes this node treat another member as one that has fallen behind what it
// acknowledged, as its transport does.
func (n *Node) Accuse(m id.Member, number id.Shard) {
	marks := n.marks.Marks(number)
	k, _ := marks.Known(m)
	marks.Behind(m, k)
}

// KnownLife returns the life of another member's replica that this node knows.
func (n *Node) KnownLife(m id.Member, number id.Shard) uint64 {
	k, _ := n.marks.Marks(number).Known(m)
	return k.Life
}

// OwnLife returns the life of this node's replica.
func (n *Node) OwnLife(number id.Shard) uint64 { return n.marks.Life(number) }
