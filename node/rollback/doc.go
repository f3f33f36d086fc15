// Package rollback notices a data directory that was rolled back: a snapshot of a virtual
// machine or an old image of a disk.
//
// Such a node has forgotten entries that it acknowledged and votes that it gave. Its own
// files are sound and don't show that. Its peers know it: a Table keeps, for each member
// and group, the highest mark that the member's answers to leaders have shown
// (transport.Mark), and for each member its last start.
//
// Detector watches the groups of this node and the other nodes. Each second it sends every
// node what changed in the table, and writes the table to the data directory. The first
// exchange with a node after the start tells what that node knows of this one.
//
// A group that has just started takes no part in elections until every node that can be
// reached, and at least a majority of the group's voters, has been asked. If a peer knows
// more than the replica has, the replica is taken out of service and rebuilt
// (replicas.Replicas.Damage). Meta can't be rebuilt in place: then the node stops. It stops,
// too, if its start or its exchange is older than what a peer has heard of it.
//
// A leader that sees a member fall behind its mark stops counting that member's answers
// and tells the member's node (docs/decisions/0021-lost-state.md).
package rollback
