// Package backup is the form of a backup, and its way out of a cluster and back: a
// folder of an object store with one sealed part for each shard, one for meta, and a
// manifest, which is written last.
//
//	NAME/shard-0001 … NAME/meta   parts: sealed chunks of compressed records
//	NAME/manifest                 what is there, with digests; without it: unfinished
//
// Run makes a backup of a Source, Restore puts one into a Target; package node gives
// both. What belongs to a gallery stays sealed with the gallery's key, and everything
// is sealed again with a key that comes from the cluster's.
//
// It may import node/bucket, raftfsm/metafsm, raftfsm/shardfsm, router, shard,
// shard/seal, internal packages and klauspost/compress.
package backup
