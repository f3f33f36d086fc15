// Package raftfsm owns a Raft group: its log, votes and snapshots on disk, the
// order of commands, their application to a Machine, and reads that see every
// write acknowledged before them.
//
//	Group     one member of one Raft group
//	Machine   the deterministic state it drives (metafsm, shardfsm)
//
// hashicorp/raft does the consensus. Between it and the world stand three
// wrappers that close its open bugs: transport (heartbeats never change raft's
// state on the goroutine that received them; a leader whose disk hangs falls
// silent), logStore (every entry sealed with a checksum) and snapshotStore (an
// installed snapshot replaces a log that contradicts it; checksum and zstd).
//
// The bulk of a Keeper's state lies in segments (shard/segment), which snapshots
// refer to: a snapshot costs what changed, and a member is sent what it lacks. What
// commands have removed leaves segments, log and snapshots within
// Config.EraseWithin (erase.go).
//
// The package may import internal/id, shard/segment, hashicorp/raft, raft-boltdb,
// bbolt, go-hclog and klauspost/compress. Nothing above it imports hashicorp/raft.
package raftfsm
