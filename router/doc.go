// Package router carries out one request of a client on the whole cluster: it
// extracts the face on this node, finds the shards concerned and their leaders,
// calls them here or at a peer, retries within the deadline, and merges.
//
// It may import raftfsm (with metafsm and shardfsm), shard, engine and internal
// packages. It knows neither HTTP nor the connections between nodes: node provides
// the transport (Peers).
package router
