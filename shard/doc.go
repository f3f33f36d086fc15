// Package shard holds the events of one Raft group: the slices of many galleries,
// each with its granted slots, subjects, tags and templates, and answers searches
// over them exactly.
//
// Writes are deterministic and come from one goroutine (the state machine's);
// reads may run beside them. What a replica decides on is the clear part of an
// event and its ciphertext; templates are opened with the gallery's key by Warm, or
// at the first search that needs them, kept in memory only, and zeroed when the event
// goes.
//
// A search holds no lock while rows are scanned, so writes and searches don't wait for
// each other; what changed meanwhile is looked up at its end, so that its answer is
// that of one moment.
//
// An event is pending (it holds a slot and is seen by Pending.Search only), active,
// or deleted (an entry of the listing, without a face); a replaced one keeps its
// ids and its place among its subject's events. Slots come by Grant and go by
// Return, as totals that only grow. A fence shuts out a deleted gallery for good.
//
// Sub-packages: kernel (the search), scan (its reference and its terms), seal
// (encryption of templates and keys), segment (sealed faces on disk), job.
// The package may import engine, engine/score and internal packages.
package shard
