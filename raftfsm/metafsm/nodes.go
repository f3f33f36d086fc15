package metafsm

import "facet/internal/id"

// PutNode adds a node or changes its member, name, zone and level; the rest stays.
type PutNode struct {
	Node Node `cbor:"1,keyasint"`
}

// PutNodeAnswer is Done, or TooOld if the node knows less than the cluster's level.
type PutNodeAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c PutNode) apply(m *Machine) PutNodeAnswer {
	if c.Node.Knows() < m.state.levelNow() {
		return PutNodeAnswer{TooOld}
	}
	old := m.state.nodes[c.Node.ID]
	if old != nil {
		c.Node.Joined, c.Node.State, c.Node.Heir = old.Joined, old.State, old.Heir
	}
	if old == nil || *old != c.Node {
		m.state.nodes[c.Node.ID] = &c.Node
		m.touch()
	}
	return PutNodeAnswer{Done}
}

// SetNodeState tells whether a node holds replicas. Removal is final.
type SetNodeState struct {
	Node  id.Node   `cbor:"1,keyasint"`
	State NodeState `cbor:"2,keyasint"`
	// Heir is the node that is to take over the replicas; zero is no particular one.
	Heir id.Node `cbor:"3,keyasint,omitzero"`
}

// SetNodeStateAnswer is Done, or UnknownNode for the node or its heir, if it is not
// there or was removed.
type SetNodeStateAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c SetNodeState) apply(m *Machine) SetNodeStateAnswer {
	return SetNodeStateAnswer{c.do(m)}
}

func (c SetNodeState) do(m *Machine) Status {
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
