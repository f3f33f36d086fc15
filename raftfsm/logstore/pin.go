package logstore

import "sync/atomic"

// pin keeps one entry from being cut off the log: the one that an installed snapshot
// ends at, while entries of another history lie behind it (raftfsm/snapshots,
// reconcile.go).
type pin struct{ index atomic.Uint64 }

// holds tells whether a cut that ends at last must leave it: it is the entry that
// the next append is compared with.
func (p *pin) holds(last uint64) bool { return last != 0 && p.index.Load() == last }

// passed notes that entries up to index were written: behind K they replaced the
// tail, and the log is whole again.
func (p *pin) passed(index uint64) {
	if k := p.index.Load(); k != 0 && index > k {
		p.index.CompareAndSwap(k, 0)
	}
}

// Pin keeps the entry at index until the entry behind it is written again.
func (s *Log) Pin(index uint64) { s.pin.index.Store(index) }
