package metafsm

import (
	"errors"
	"fmt"
)

// Nodes of different versions may run in one cluster. A new form of a command, record or
// request must wait until no node runs software that can't read it. The record of each
// node has the level that its software knows. When all nodes know a higher level than the
// cluster's, the leader raises the cluster's level for good. From then on no node that
// knows less may join. See docs/formats/commands.md.

// The levels that this software knows. A level counts the forms of the commands and records of
// meta and shards, and of the requests between nodes. A release with a form that the release
// before can't read has the next level. It uses the form only when Machine.Level has reached
// that level.
const (
	// LevelFirst is the oldest level that this software reads, the one of facet 0.4.0. Found
	// sets it, so a later LevelFirst needs a new version of Found.
	LevelFirst uint32 = 6
	// Level is the newest level that this software knows.
	Level uint32 = 6
	// levelReleased is the newest level of a release before 0.4.0. No release had the next two.
	levelReleased uint32 = 3
)

// The errors of software that can't read the forms of a cluster, a snapshot or a data directory.
var (
	// ErrLevel is returned when the cluster's level is higher than this software knows.
	ErrLevel = errors.New("metafsm: the cluster uses forms of a newer version of the software")
	// ErrOldLevel is returned for forms below LevelFirst (OldLevel).
	ErrOldLevel = errors.New("this version reads only what facet 0.4.0 or newer wrote")
)

// OldLevel returns the ErrOldLevel of what has a level below LevelFirst, for example "the
// data directory". 0 stands for level 1.
func OldLevel(what string, level uint32) error {
	writer := "facet 0.3.1 or before wrote it, and facet 0.3.1 reads it"
	if level > levelReleased {
		writer = "a development version before facet 0.4.0 wrote it, and only such a version reads it"
	}
	return fmt.Errorf("%s has level %d: %s; %w: start it with a new data directory, and enrol the photos again", what, max(1, level), writer, ErrOldLevel)
}

// RaiseLevel raises the cluster's level to one that all its nodes know.
type RaiseLevel struct {
	Level uint32 `cbor:"1,keyasint"`
}

// RaiseLevelAnswer answers RaiseLevel. The status is Done, also if the level is as high
// already, or TooOld if a node does not know the level.
type RaiseLevelAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Level is the cluster's present level.
	Level uint32 `cbor:"2,keyasint"`
}

// NewKnowing returns the machine of a cluster that is not founded. It acts as software
// that knows the given level.
func NewKnowing(level uint32) *Machine {
	m := newMachine(limits)
	m.known = level
	return m
}

// Level returns the level of the cluster, at least LevelFirst.
func (m *Machine) Level() uint32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.levelNow()
}

func (st *state) levelNow() uint32 { return max(LevelFirst, st.level) }

// Knows returns the level that the node's software knows, at least 1.
func (n Node) Knows() uint32 { return max(1, n.Level) }

// tooHigh returns the ErrLevel of software that must not continue.
func tooHigh(level, known uint32) error {
	return fmt.Errorf("%w: level %d, this software knows %d: run a version at least as new as on the cluster's other nodes", ErrLevel, level, known)
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
		panic(tooHigh(to, m.known).Error()) // this node was restarted with an older binary than its record says
	}
	m.state.level = to
	m.touch()
	return Done
}
