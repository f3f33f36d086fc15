// Package membership tells which nodes are there and how to reach them, by
// gossip (hashicorp/memberlist). It proposes, Raft decides: nothing that it says
// is safe to count votes with.
//
// Streams go through the port between nodes, packets over UDP on the same port
// number, encrypted with the cluster's gossip key. A partition of any length
// heals: seeds and last known addresses are called again for ever.
//
// The package may import node/transport, internal/id, memberlist and cbor.
package membership
