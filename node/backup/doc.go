// Package backup is the form of a backup, and its way out of a cluster and back: a
// folder of an object store with one sealed part for each shard, one for meta, and a
// manifest, which is written last.
//
//	NAME/shard-0001 … NAME/meta   parts: sealed chunks of compressed records
//	NAME/manifest                 what is there, with digests; without it: unfinished
//
// Run makes a backup of a Source, Restore puts one into a Target. What belongs to a gallery stays sealed with the gallery's key, and everything
// is sealed again with a key that comes from the cluster's.
//
// A node's Service is both for its cluster. It does one thing at a time, when an operator
// orders it. With a schedule it watches the object store each minute, on meta's leader: it
// makes a backup when the newest one by the clock is old enough, and removes the oldest of
// those. OpenRecovery works on the data directories of nodes that don't run.
package backup
