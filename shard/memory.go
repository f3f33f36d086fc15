package shard

import (
	"sort"

	"github.com/tidwall/btree"
)

const (
	// entryBytes is what an entry takes in the Go heap beside its sealed face: itself,
	// its place among the entries and its subject's (BenchmarkBytes).
	entryBytes = 230
	// templateNum ÷ templateDen is what a template in the matrix takes for each byte of
	// its sealed face: 1,068 to 877 at 192 numbers, and less above.
	templateNum, templateDen = 5, 4
	// freeShare: slots of erased templates count as room, up to this part of the slice's
	// templates. The next ones take them, but only those of the same gallery, so that all
	// of them as room for others would let memory grow beyond the budget.
	freeShare = 16
	// heapGrowth is the memory that the garbage collector lets live bytes take.
	heapGrowth = 2
)

// Memory estimates the memory that the shard takes, or will take once all its
// templates are open; within some per cent for slices of many events.
func (s *Shard) Memory() (bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stored := s.sealed.last()
	for _, sl := range s.state.slices {
		t := &sl.templates
		t.mu.Lock()
		waiting := int64(len(t.waiting))
		if t.matrix != nil {
			held := t.matrix.Bytes()
			bytes += held - min(t.matrix.FreeBytes(), held/freeShare)
		}
		t.mu.Unlock()
		active := int64(sl.entries.Len() - sl.deleted.Len())
		entries := int64(sl.entries.Len() + len(sl.pending))
		face := sl.sealedBytes / max(active+int64(len(sl.pending)), 1)
		heap := entries*entryBytes + face*int64(after(sl.entries, stored)+len(sl.pending))
		bytes += heapGrowth*heap + waiting*face*templateNum/templateDen
	}
	for _, f := range s.state.fences.of {
		bytes += heapGrowth * int64(f.remains.Len()) * entryBytes
	}
	return bytes
}

// after counts the entries after a sequence.
func after(entries *btree.Map[uint64, *entry], sequence uint64) int {
	return entries.Len() - sort.Search(entries.Len(), func(i int) bool {
		at, _, _ := entries.GetAt(i)
		return at > sequence
	})
}

// last is the last sequence whose face is in a segment, and no longer in memory.
func (ss *sealedStore) last() uint64 {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.set.Last()
}
