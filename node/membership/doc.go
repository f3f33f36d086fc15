// Package membership finds out by gossip (hashicorp/memberlist) which nodes are
// present and how to reach them. It proposes, Raft decides: its view is not safe
// for counting votes.
//
// Streams use the port between nodes. Packets use UDP on the same port number,
// encrypted with the cluster's gossip key. A partition of any length heals, because
// seeds and last known addresses are called again for ever.
//
// The package may import node/transport, internal/id, memberlist and cbor.
package membership
