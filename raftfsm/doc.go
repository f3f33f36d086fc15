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
// The package may import internal/id, hashicorp/raft, raft-boltdb, bbolt, go-hclog
// and klauspost/compress. Nothing above it imports hashicorp/raft.
package raftfsm
