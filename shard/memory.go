package shard

import (
	"sort"

	"github.com/tidwall/btree"
)

const (
	// entryBytes is the Go heap of an entry without its sealed face: the entry, its place among the
	// entries, and its subject's place among the subjects (BenchmarkBytes).
	entryBytes = 230
	// expiryBytes is the Go heap of an entry's time of expiry (BenchmarkTimetable).
	expiryBytes = 60
	// meanBytes is the Go heap of a subject's own template: its row and the row's place among the
	// subjects (BenchmarkMeanBytes).
	meanBytes = 230
	// templateNum ÷ templateDen is the size of a template in the matrix divided by the size of its
	// sealed face. These are 1,068 and 877 bytes at 192 numbers. The ratio is smaller for larger
	// templates.
	templateNum, templateDen = 5, 4
	// freeShare limits the slots of erased templates that count as room: one part in freeShare of
	// the slice's memory. Only templates of the same gallery can reuse these slots, so counting
	// them all would let memory grow beyond the budget.
	freeShare = 16
	// heapGrowth is the garbage collector's factor between live bytes and heap.
	heapGrowth = 2
)

// Memory estimates the bytes that the shard takes once all its templates are open. It is right
// within some per cent for slices of many events.
func (s *Slots) Memory() (bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stored := s.sealed.last()
	for _, sl := range s.state.slices {
		held, waiting := sl.templates.memory()
		bytes += held
		active := int64(sl.entries.Len() - sl.deleted.Len())
		entries := int64(sl.entries.Len() + len(sl.pending))
		face := sl.sealedBytes / max(active+int64(len(sl.pending)), 1)
		heap := entries*entryBytes + face*int64(after(sl.entries, stored)+len(sl.pending))
		heap += expiryBytes * int64(sl.times.len())
		if m := sl.means.Load(); m != nil {
			heap += int64(len(m.of))*meanBytes + m.patternsBytes()
			for kind := range m.rows {
				held, more := m.rows[kind].memory()
				bytes, waiting = bytes+held, waiting+more
			}
		}
		bytes += heapGrowth*heap + waiting*face*templateNum/templateDen
	}
	for _, f := range s.state.fences.of {
		bytes += heapGrowth * int64(f.remains.Len()) * entryBytes
	}
	return bytes
}

// memory returns the bytes of the matrix that count, and the number of templates that wait.
func (t *templates) memory() (held, waiting int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.matrix != nil {
		held = t.matrix.Bytes()
		held -= min(t.matrix.FreeBytes(), held/freeShare)
	}
	return held, int64(len(t.waiting))
}

// after returns the number of entries after a sequence.
func after(entries *btree.Map[uint64, *entry], sequence uint64) int {
	return entries.Len() - sort.Search(entries.Len(), func(i int) bool {
		at, _, _ := entries.GetAt(i)
		return at > sequence
	})
}

// last returns the last sequence whose face is in a segment and no longer in memory.
func (ss *sealedStore) last() uint64 {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.set.Last()
}
