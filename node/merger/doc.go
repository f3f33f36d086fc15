// Package merger carries out the merges of subjects on the shards that this node leads. A merge outlives the
// request that asked for it and the leader that began it. The package imports node/loop.
package merger
