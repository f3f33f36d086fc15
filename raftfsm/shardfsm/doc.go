// Package shardfsm is the state machine of the groups that hold events. It applies each
// committed command to a shard.Shard exactly once.
//
// A retry has the operation of the first try (package operation) and gets its answer. The
// package never decrypts. It imports no time, no random source and no operating system.
// It may import raftfsm, raftfsm/command, raftfsm/operation, shard and internal packages.
package shardfsm
