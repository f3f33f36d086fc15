// Package calls carries out one method on the Raft groups of a cluster.
//
// It finds the leader of a group, or a replica with little work, calls it on this
// node or on a peer, and retries within the deadline. Scatter calls many groups at
// once. The package knows nothing of galleries and does not import router.
package calls
