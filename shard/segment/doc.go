// Package segment keeps the events of a shard in files that are written once.
//
//	File   records in ascending order of their sequence, each with a clear part and
//	       a sealed part; checksums over every byte; named by its own hash
//	Set    the files that hold a state together, and which of their records are dead
//	Store  the folder; it makes, receives, opens and collects files
//
// A state's sets follow one another: Store.Build writes what no file holds yet,
// merges small files and leaves the dead records out of those where they are too
// many, or all of them when told to erase. Nothing here decides what a record
// means, and the layout is no part of a replicated state: two replicas with equal
// states may hold them in different files.
//
// What a state keeps in memory too is simpler: Store.Rebatch writes its Batches from there.
//
// The bytes are drawn in format.md. The package imports the standard
// library only.
package segment
