// Package shard holds the events of one Raft group and answers exact searches over them. It keeps a
// slice for each gallery: its granted slots, subjects, tags and templates.
//
// Writes are deterministic and come from one goroutine, the state machine's. Reads may run beside
// them. A replica decides by the clear part of an event and its ciphertext only. Warm, or the first
// search that needs them, decrypts templates with the gallery's key. Decrypted templates stay in
// memory only, and are zeroed when their event goes.
//
// A search holds no lock while it scans rows, so writes and searches don't wait for each other. At
// its end it looks up what changed meanwhile, so its answer is that of one moment.
//
// An event is in one of three states:
//
//   - pending: it holds a slot, and only Shard.SearchPending sees it;
//   - active;
//   - deleted: an entry of the listing, without a face.
//
// A replaced event keeps its ids and its place among its subject's events. Grant adds slots and
// Return takes them away; both are totals that only grow. A fence shuts out a deleted gallery for
// good.
//
// Sub-packages: kernel (fast search), scan (its plain definition), seal (encryption of templates
// and keys), segment (sealed faces on disk), job (bulk registrations). The package may import
// engine, engine/score and internal packages.
package shard
