// Package sim holds tests that run whole clusters in virtual time: the real Raft,
// gossip and HTTPS code on a network in memory, inside a testing/synctest bubble,
// so that minutes of elections and partitions take seconds. It has no code outside
// its tests, and may import everything.
//
// A run in virtual time does not replay exactly: goroutines that are ready at the
// same instant run in any order. A failure prints what the clients saw.
package sim
