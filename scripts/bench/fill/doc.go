// Package fill puts many templates into the shards of a cluster that does not run,
// through their Raft groups. Benchmarks need millions of templates, and to register
// each would take hours. It imports raftfsm, shard and engine, but not node.
package fill
