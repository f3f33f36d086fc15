package raftfsm

import "io"

// Machine is a deterministic state machine: its state and its answers depend on
// the commands applied so far and on nothing else. A Group calls Apply, Freeze
// and Restore one at a time; Digest may be called while none of them runs.
type Machine interface {
	// Apply carries out the command at index and returns the answer for its
	// proposer. cmd is only valid during the call and must not be changed. A
	// command that it can't read is a bug and panics: divergence is worse.
	Apply(index uint64, cmd []byte) []byte

	// Freeze captures the state after the last Apply. It must be cheap (copy on
	// write), because no command is applied meanwhile.
	Freeze() (Frozen, error)

	// Restore reads a state that a Frozen wrote, up to the end of r, and then
	// replaces the machine's state by it. On an error the old state stays.
	Restore(r io.Reader) error

	// Digest gives a hash of the state: members that applied the same index have
	// the same digest.
	Digest() [32]byte
}

// Frozen is a state that no longer changes.
type Frozen interface {
	// WriteTo writes the state; commands may be applied to the machine meanwhile.
	io.WriterTo
	// Release ends the use of the state. It is called exactly once.
	Release()
}
