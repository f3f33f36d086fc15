package metafsm

import "facet/internal/id"

// PutNode adds a node, or changes its member, name, zone and level. The other fields
// stay. The status is Done, or TooOld if the node's software does not know the
// cluster's level.
type PutNode struct {
	Node Node `cbor:"1,keyasint"`
}

func (c PutNode) apply(m *Machine) Status {
	if c.Node.Knows() < m.state.levelNow() {
		return TooOld
	}
	old := m.state.nodes[c.Node.ID]
	if old != nil {
		c.Node.Joined, c.Node.State, c.Node.Heir = old.Joined, old.State, old.Heir
	}
	if old == nil || *old != c.Node {
		m.state.nodes[c.Node.ID] = &c.Node
		m.touch()
	}
	return Done
}

// SetNodeState sets whether a node holds replicas. Removal is final. The status is
// Done, or UnknownNode if the node or its heir does not exist or was removed.
type SetNodeState struct {
	Node  id.Node   `cbor:"1,keyasint"`
	State NodeState `cbor:"2,keyasint"`
	// Heir is the node that takes over the replicas. Zero leaves the choice to Replan.
	Heir id.Node `cbor:"3,keyasint,omitzero"`
}

func (c SetNodeState) apply(m *Machine) Status {
	old, heir := m.state.nodes[c.Node], m.state.nodes[c.Heir]
	if old == nil || !c.Heir.IsZero() && (heir == nil || heir.State == NodeRemoved) {
		return UnknownNode
	}
	set := *old
	set.State, set.Heir = c.State, c.Heir
	if set == *old {
		return Done
	}
	if old.State == NodeRemoved {
		return UnknownNode
	}
	m.state.nodes[c.Node] = &set
	m.touch()
	return Done
}
