// Package metafsm is the state machine of group 0. It holds the cluster's records (nodes,
// shard map, tenants, access keys, galleries, applications, tags) and the slots of each
// gallery that each shard was granted and has returned.
//
// Every node holds a replica and reads it locally. Commands bring all random values and
// times. The proposer checks the bounds of numbers and names; the machine never does.
// Placement (placement.go, replan.go) only computes. The package imports no time, no
// random source and no operating system. It may import raftfsm, raftfsm/command,
// raftfsm/operation and internal packages.
package metafsm
