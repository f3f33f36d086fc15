// Package sim tests whole clusters in virtual time: the real Raft, gossip and HTTPS
// code on a network in memory, inside a testing/synctest bubble. Minutes of
// elections and partitions take seconds there. The package has no code outside its
// tests, and may import everything.
//
// A run in virtual time does not replay exactly, because goroutines that are ready
// at the same instant run in any order. A failure prints what the clients saw.
package sim
