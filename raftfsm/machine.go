package raftfsm

import (
	"io"

	"facet/shard/segment"
)

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

	// Digest returns a hash of the state. Members that applied the same index have the
	// same digest.
	Digest() [32]byte
}

// Frozen is a state that no longer changes.
type Frozen interface {
	// WriteTo writes the state; commands may be applied to the machine meanwhile.
	io.WriterTo
	// Release ends the use of the state. It is called exactly once.
	Release()
}

// Keeper is a Machine that keeps the bulk of its state in segments. Without a store
// it keeps all of it in memory, and its snapshots hold all of it.
type Keeper interface {
	Machine
	// Keep hands the machine the store of its segments. It is called before any other
	// method.
	Keep(*segment.Store)
}

// Stored is the Frozen of a Keeper with a store.
type Stored interface {
	Frozen

	// Settle writes the records that are in no segment yet, and returns all segments
	// that hold the bulk of the state. The Frozen owns the segments. After Settle,
	// WriteTo writes a state that refers to them.
	Settle(segment.Clean) ([]*segment.File, error)

	// Adopt is called when the snapshot is complete. From then on the machine may read
	// from the segments what it kept in memory. Adopt has no effect if the machine was
	// restored since Freeze.
	Adopt()
}
