// Package fsmtest shows that a state machine is deterministic: replicas that take
// different ways through the same commands (one by one, over a snapshot and a
// replay, over another's snapshot) give equal answers and end in equal states.
//
// Run drives any raftfsm.Machine; the package's own tests drive shardfsm and
// metafsm against small models that share no code with them. Everything follows
// from one seed. It may import raftfsm, what lies in and below it, and internal
// packages.
package fsmtest
