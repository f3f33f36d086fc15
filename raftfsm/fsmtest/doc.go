// Package fsmtest tests that a state machine is deterministic. Replicas get the same commands
// in different ways: one by one, through a snapshot and a replay, or through the snapshot of
// another replica. They must give equal answers and end in equal states.
//
// Run drives any raftfsm.Machine. The package's own tests compare shardfsm and metafsm with
// small models that share no code with them. One seed determines a run. The package may
// import raftfsm and the packages below it, shard, engine and internal packages.
package fsmtest
