package metafsm

import (
	"sync"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/operation"
)

// limits is the most operations that the machine remembers. Apply depends on it, so other
// numbers need new versions of the commands.
var limits = operation.Limits{Plain: 1 << 16, Keyed: 1 << 16}

// Machine applies commands to the cluster's records. Its reading methods may be called at
// any time. The caller may change their results.
type Machine struct {
	limits operation.Limits
	known  uint32 // the level that this software knows

	// mu guards index, state, ops and changed. Apply changes state, Restore replaces it.
	mu      sync.RWMutex
	index   uint64
	state   *state
	ops     *operation.Memory
	changed chan struct{} // closed and replaced when state changes
}

var _ raftfsm.Machine = (*Machine)(nil)

// New returns the machine of a cluster that is not founded.
func New() *Machine { return newMachine(limits) }

func newMachine(l operation.Limits) *Machine {
	return &Machine{limits: l, known: Level, state: newState(), ops: operation.New(l), changed: make(chan struct{})}
}

// Apply applies the command at index and returns the answer, as command.Apply does.
func (m *Machine) Apply(index uint64, cmd []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index = index
	return command.Apply(commands[:], m, index, cmd)
}

// Changed returns a channel that is closed at the next change of any record. Remembered
// operations are not records.
func (m *Machine) Changed() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// touch wakes the callers of Changed. mu is held.
func (m *Machine) touch() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// once looks up an operation of a tenant, or of none. The status is Replayed, with the
// outcome, if the operation was done before. It is 0 if the operation can be done now. Any
// other status refuses it.
func (m *Machine) once(w Write, by id.Tenant, code byte, scope [16]byte) (operation.Outcome, Status) {
	m.ops.Advance(w.Time)
	done, ok := m.ops.Recall(w.Op)
	switch {
	case ok && done.Kind == code && done.Scope == scope && done.Name.Request == w.Request:
		return done, Replayed
	case ok:
		return done, Conflict
	case m.ops.Full(w.name()):
		return done, OpsFull
	case m.changedTooMuch(by, w.Keyed):
		return done, OverChanges
	default:
		return done, 0
	}
}

// done remembers an operation of a tenant, or of none, and wakes the callers of Changed.
func (m *Machine) done(w Write, by id.Tenant, code byte, scope [16]byte, ids ...[16]byte) {
	o := operation.Outcome{Name: w.name(), Kind: code, Scope: scope}
	copy(o.IDs[:], ids)
	m.remember(o, by)
	m.touch()
}

// remember remembers the outcome of an operation, which counts against the quota of the tenant.
func (m *Machine) remember(o operation.Outcome, by id.Tenant) {
	o.Owner = by
	m.ops.Remember(o)
}
