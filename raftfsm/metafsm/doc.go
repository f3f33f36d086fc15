// Package metafsm is the state machine of group 0: who and what the cluster knows
// (nodes, shard map, tenants, access keys, galleries, applications, tags) and how
// many slots of each gallery were granted to which shard and came back.
//
// Every node holds a replica and reads it locally. Everything random or timed
// comes in the commands; bounds of numbers and names are checked before a command
// is proposed, never here. Placement (placement.go) is pure arithmetic on top of
// it. The package imports no time, no random source, no operating system. It may
// import raftfsm, raftfsm/operation and internal packages.
package metafsm
