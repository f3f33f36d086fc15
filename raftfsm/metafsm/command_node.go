package metafsm

import (
	"facet/internal/codec"
	"facet/internal/id"
)

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

// Encode gives the bytes to propose.
func (c SetNodeState) Encode() []byte { return codec.Encode(headSetNodeState, c) }

// ParseSetNodeStateAnswer reads the answer to a SetNodeState.
func ParseSetNodeStateAnswer(b []byte) (SetNodeStateAnswer, error) {
	return parse[SetNodeStateAnswer](b, headSetNodeState)
}

func (c SetNodeState) apply(m *Machine) []byte {
	return codec.Encode(answerOf(headSetNodeState), SetNodeStateAnswer{m.setNodeState(c)})
}

func (m *Machine) setNodeState(c SetNodeState) Status {
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
