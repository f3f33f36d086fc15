// Package raftfsm owns a Raft group: the order of commands, their application to a
// Machine, and reads that see every write acknowledged before them.
//
//	Group     one member of one Raft group
//	Machine   the deterministic state it drives (metafsm, shardfsm)
//
// hashicorp/raft does the consensus. Wrappers around its interfaces work around its open
// bugs. The doc.go of each package of wrappers names the bugs and the tests that show
// them:
//
//	transport   raft.Transport, raft.StreamLayer
//	logstore    raft.LogStore, raft.StableStore
//	snapshots   raft.SnapshotStore
//	health      the state that the wrappers share
//
// The bulk of a Keeper's state lies in segments (shard/segment), which snapshots
// refer to. So a snapshot writes only what changed, and a leader sends a member only
// the segments that it lacks. Data that commands have removed disappears from segments,
// log and snapshots within Config.EraseWithin (erase.go).
//
// The package may import internal/id, internal/codec, shard/segment, hashicorp/raft and
// go-hclog. No package above it imports hashicorp/raft or the four packages of wrappers.
package raftfsm
