// Package calls carries out one method on the Raft groups of a cluster.
//
// It finds the leader of a group, or a replica that has little to do, calls it here
// or at a peer, and retries within the deadline. Scatter does so on many groups at
// once. Rounds let callers share the work that each of them needs done after it
// came. The package knows nothing of galleries and imports nothing of router.
package calls
