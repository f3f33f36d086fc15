// Package shard holds the events of one Raft group: the slices of many galleries,
// each with its granted slots, subjects, tags and templates, and answers searches
// over them exactly.
//
// Writes are deterministic and come from one goroutine (the state machine's);
// reads may run beside them. What a replica decides on is the clear part of an
// event and its ciphertext; templates are opened with the gallery's key at the
// first search that needs them, kept in memory only, and zeroed when the event
// goes.
//
// An event is pending (it holds a slot and is seen by SearchPending only), active,
// or deleted (an entry of the listing, without a face); a replaced one keeps its
// ids and its place among its subject's events. Slots come by Grant and go by
// Return, as totals that only grow. A fence shuts out a deleted gallery for good.
//
// Sub-packages: scan (the search kernel), seal (encryption of templates and keys).
// The package may import engine, engine/score and internal packages.
package shard
