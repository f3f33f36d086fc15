// Package shardfsm is the state machine of the groups that hold events: it gives
// each committed command its one effect on a shard.Shard.
//
// A retry is known by its operation (package operation) and gets the first answer.
// The package decides on clear parts and ciphertext only; it imports no time, no
// random source, no operating system. It may import raftfsm, raftfsm/operation,
// shard and internal packages.
package shardfsm
