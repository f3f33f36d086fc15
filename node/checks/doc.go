// Package checks finds replicas whose state differs from the majority's.
//
// It watches the groups that this node leads. Every Config.Every, and after 1,000 entries,
// all members of a group hash their state at one index of the log, and the leader compares
// the sums. After a comparison that took t there is none for 20 t. The node of a replica
// that differs from the majority takes it out of service and rebuilds it (package
// replicas). The package changes nothing else. Run checks each second whether a comparison
// is due.
package checks
