// Package raftfsm owns a Raft group: the order of commands, their application to a
// Machine, and reads that see every write acknowledged before them.
//
//	Group     one member of one Raft group
//	Machine   the deterministic state it drives (metafsm, shardfsm)
//
// hashicorp/raft does the consensus. Between it and the world stand wrappers that close
// its open bugs, a package for each of its interfaces, whose doc.go names the bugs and
// the tests that show them:
//
//	transport   raft.Transport, raft.StreamLayer
//	logstore    raft.LogStore, raft.StableStore
//	snapshots   raft.SnapshotStore
//	health      what they must know of each other
//
// The bulk of a Keeper's state lies in segments (shard/segment), which snapshots
// refer to: a snapshot costs what changed, and a member is sent what it lacks. What
// commands have removed leaves segments, log and snapshots within
// Config.EraseWithin (erase.go).
//
// The package may import internal/id, internal/codec, shard/segment, hashicorp/raft and
// go-hclog. Nothing above it imports these four packages or hashicorp/raft.
package raftfsm
