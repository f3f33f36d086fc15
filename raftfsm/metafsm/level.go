package metafsm

import (
	"errors"
	"fmt"
)

// Nodes of different versions may run beside each other, so a form of commands,
// records or requests that older software can't read is used only when no node needs
// the older one any more. Every node says in its record which level it knows. When all
// of them know a higher one than the cluster's, the leader raises it, for good: from
// then on no node that knows less may come in. See docs/formats/commands.md.

// Level is the newest form that this software knows of the commands and records of
// meta and of shards, and of what nodes ask each other. Software that brings a form
// which the one before can't read gets the next number, and uses the form only where
// Machine.Level has reached it.
const Level uint32 = 3

// What came with a level after the first: it is sent and proposed from that level on.
const (
	// LevelRekey is that of Rekey, and from it on Load takes no secret that another key
	// than the cluster's has wrapped.
	LevelRekey uint32 = 2
	// LevelJobEpoch is that of shardfsm.BeginJob's Epoch, and of the question that
	// goes with it.
	LevelJobEpoch uint32 = 2
	// LevelReplicaMember is that of nodes' words on their replicas with the member that
	// gives it.
	LevelReplicaMember uint32 = 2
	// LevelBatches is that of shards' snapshots whose operations and items of jobs are in
	// files (shardfsm.Machine.Batch). A node writes them once its data directory says that
	// the cluster is at this level.
	LevelBatches uint32 = 3
)

// ErrLevel says that a cluster uses forms that this software does not know.
var ErrLevel = errors.New("metafsm: the cluster uses forms of a newer version of the software")

// RaiseLevel lets the cluster use the forms of a level that all its nodes know.
type RaiseLevel struct {
	Level uint32 `cbor:"1,keyasint"`
}

// RaiseLevelAnswer is Done (also where it is as high already), or TooOld if there is
// a node that does not know the level.
type RaiseLevelAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Level is the cluster's now.
	Level uint32 `cbor:"2,keyasint"`
}

// NewKnowing makes the machine of a cluster that is not founded, of software that
// knows this level.
func NewKnowing(level uint32) *Machine {
	m := newMachine(limits)
	m.known = level
	return m
}

// Level gives the level that the cluster uses; it is at least 1.
func (m *Machine) Level() uint32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.levelNow()
}

func (st *state) levelNow() uint32 { return max(1, st.level) }

// Knows gives the level that the node's software knows; it is at least 1.
func (n Node) Knows() uint32 { return max(1, n.Level) }

// tooHigh says in words why this software must not go on.
func tooHigh(level, known uint32) error {
	return fmt.Errorf("%w: level %d, this software knows %d: run a version that is at least as new as the cluster's other nodes", ErrLevel, level, known)
}

func (c RaiseLevel) apply(m *Machine) RaiseLevelAnswer {
	status := c.do(m)
	return RaiseLevelAnswer{status, m.state.levelNow()}
}

func (c RaiseLevel) do(m *Machine) Status {
	to := c.Level
	if to <= m.state.levelNow() {
		return Done
	}
	for _, n := range m.state.nodes {
		if n.State != NodeRemoved && n.Knows() < to {
			return TooOld
		}
	}
	if to > m.known {
		panic(tooHigh(to, m.known).Error()) // this node's record says otherwise: it was started with an older binary
	}
	m.state.level = to
	m.touch()
	return Done
}
