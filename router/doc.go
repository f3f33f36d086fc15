// Package router has the types of requests on the whole cluster and of their
// answers, and what a node gives to the parts that carry them out.
//
// routing.Router carries out a request: it extracts the face on this node, finds the
// shards concerned and their leaders, calls them here or at a peer, retries within the
// deadline, and merges. Each kind of request has a package of its own below this one.
//
// They may import raftfsm (with metafsm and shardfsm), shard, engine and internal
// packages. They know neither HTTP nor the connections between nodes: node provides
// the transport (Peers).
package router
