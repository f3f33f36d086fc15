// Package health holds what the parts of one member of a Raft group must know of each
// other: whether the disk answers, and whether the member was taken out. The stores
// report, the transport and the group ask.
//
// It lies below raftfsm, raftfsm/logstore, raftfsm/snapshots and raftfsm/transport, and
// imports none of them.
package health
