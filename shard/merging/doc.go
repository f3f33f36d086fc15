// Package merging keeps which subjects are being merged into others.
//
// A merge copies the events of one subject, the source, to another, the target, and then removes the
// source. The two may lie on different shards. The source's shard has the Merge, so that any later
// leader can continue it; the target's shard has the mark that the target receives copies. A subject
// that receives copies can't become a source, and a source receives none. So merges form no chains
// and no cycles, and each ends by itself.
//
// The order of a merge:
//
//	source's shard   Begin ─────────────────────── End ──────── Forget
//	target's shard          Receive (each copy) ─────── Stop ─────
//
// Each step may be repeated. A merge that is given up is first marked as refused, so that no copy is
// expected to stay, then its copies are removed, and then it ends. Until it ends, nothing else removes
// the source or its events, nor the target: the copies would stay, or the source would go alone.
//
// Until End, a search may find an event under both subjects. A search
// reads the two shards at two moments, so End waits for searches that may have read the target's
// shard before the copies, and Forget for all others (router/merges/merges.go).
//
// Writes are deterministic and come from one goroutine, the state machine's. Reads may run beside
// them. The package imports internal packages only.
package merging
