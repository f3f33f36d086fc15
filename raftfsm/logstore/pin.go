package logstore

import "sync/atomic"

// pin protects one entry from compaction: the entry at which an installed snapshot ends,
// while entries of another history follow it (raftfsm/snapshots, reconcile.go).
type pin struct{ index atomic.Uint64 }

// holds reports whether a cut that ends at last must leave that entry, because raft
// compares the next append with it.
func (p *pin) holds(last uint64) bool { return last != 0 && p.index.Load() == last }

// passed records that entries up to index were written. If index is behind the pinned
// entry, those entries have replaced the old tail, and passed removes the pin.
func (p *pin) passed(index uint64) {
	if k := p.index.Load(); k != 0 && index > k {
		p.index.CompareAndSwap(k, 0)
	}
}

// Pin protects the entry at index until the entry after it is written again.
func (s *Log) Pin(index uint64) { s.pin.index.Store(index) }
