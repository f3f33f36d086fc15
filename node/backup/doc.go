// Package backup makes, verifies and restores backups. A backup is a folder of an object
// store with one sealed part for each shard, one for meta, and a manifest, which is written
// last.
//
//	NAME/shard-0001 … NAME/meta   parts: sealed chunks of compressed records
//	NAME/manifest                 the list of parts with digests; missing while unfinished
//
// Run makes a backup of a Source, Restore loads one into a Target. The data of a gallery
// stays sealed with the gallery's key, and each part is sealed again with a key that is
// derived from the cluster's key.
//
// A node's Service is the Source and the Target of its cluster. It does one job at a time,
// by an operator's order. On meta's leader it also checks the schedule each minute: it makes
// a backup when the newest scheduled one is old enough, and removes the oldest of these.
// OpenRecovery works on the data directories of stopped nodes.
package backup
