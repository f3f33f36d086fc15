// Package fill puts many templates into the shards of a cluster that does not run,
// through their Raft groups: benchmarks need millions, and a registration of each
// would take hours. It imports raftfsm, shard and engine, and nothing of a node.
package fill
