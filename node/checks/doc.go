// Package checks finds replicas whose state differs from the majority's.
//
// It watches the groups that this node leads. It has all members of a group hash their
// state at one index of the log, every Config.Every and after 1,000 entries, and compares
// the sums; for 20 times as long as a comparison took there is no other. A replica that
// differs from the majority is told so and is taken out of service there; its node then
// rebuilds it (package replicas). Nothing else is changed. Run looks each second whether
// a comparison is due.
package checks
