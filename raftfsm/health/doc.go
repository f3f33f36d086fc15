// Package health holds the state that the parts of one member of a Raft group share:
// whether its disk answers, and whether its group was taken out of service. The stores
// report to it; the transport and the group ask it.
//
// It lies below raftfsm, raftfsm/logstore, raftfsm/snapshots and raftfsm/transport, and
// imports none of them.
package health
