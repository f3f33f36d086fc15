// Package clock compares this node's clock with those of the other nodes. Each answer of a node
// about its links brings the node's time (package links).
//
// A clock agrees while it is within SkewMax of a majority of the nodes' clocks, itself counted, as
// heard a short time ago. What must not happen too early, the expiry of events, waits while it does
// not. A clock that most nodes contradict is corrected for the times of new writes: a shard's times
// never go back, so one write of a leader that is a year ahead would move them for good.
//
// A reading is kept with the monotonic clock, so a jump of the wall clock is noticed at its next
// use.
//
// The package may import internal/id.
package clock
