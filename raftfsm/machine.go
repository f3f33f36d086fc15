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

// Keeper is a Machine that keeps the bulk of its state in segments. Without a store
// it keeps all of it in memory, and its snapshots hold all of it.
type Keeper interface {
	Machine
	// Keep gives the machine the store of its segments, before anything else is called.
	Keep(*segment.Store)
}

// Stored is what a Keeper with a store freezes.
type Stored interface {
	Frozen

	// Settle writes what is in no segment yet, and gives all segments that hold the
	// bulk of the state; they belong to the Frozen. From then on WriteTo writes a
	// state that refers to them.
	Settle(segment.Clean) ([]*segment.File, error)

	// Adopt tells the machine that the snapshot counts, so that it may read from
	// the segments what it has kept in memory until now. It is of no effect if the
	// machine was restored since.
	Adopt()
}
