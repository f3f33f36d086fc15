// Package segment keeps the events of a shard in files that are written once.
//
//	File   records in ascending order of their sequence, each with a clear part and
//	       a sealed part; checksums over every byte; named by its own hash
//	Set    the files that hold a state together, and which of their records are dead
//	Store  the folder; it makes, receives, opens and collects files
//
// The sets of a state follow one another. Store.Build writes the records that no file has yet, and
// merges small files. It also drops the dead records of files with too many of them, or all dead
// records when told to erase. The package gives records no meaning. The layout is no part of a
// replicated state: replicas with equal states may have different files.
//
// Records that also stay in memory are simpler: Store.Rebatch writes Batches of them.
//
// format.md draws the bytes. The package imports the standard library only.
package segment
