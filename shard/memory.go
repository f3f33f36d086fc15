package shard

const (
	// pendingBytes is the Go heap of a pending event without its sealed face, and faceBytes that of a
	// sealed face's place in memory.
	pendingBytes, faceBytes = 300, 50
	// expiryBytes is the Go heap of an entry's time of expiry (BenchmarkTimetable).
	expiryBytes = 60
	// templateNum ÷ templateDen is the size of a template in the matrix divided by the size of its
	// sealed face. These are 1,068 and 877 bytes at 192 numbers. The ratio is smaller for larger
	// templates.
	templateNum, templateDen = 5, 4
	// codesNum ÷ codesDen is the size of its codes alone: a template whose codes are on disk is cold when
	// it is open (codes.go).
	codesNum, codesDen = 3, 8
	// freeShare limits the slots of erased templates that count as room: one part in freeShare of
	// the slice's memory. Only templates of the same gallery can reuse these slots, so counting
	// them all would let memory grow beyond the budget.
	freeShare = 16
	// heapGrowth is the garbage collector's factor between live bytes and heap.
	heapGrowth = 2
)

// Memory estimates the bytes that the shard takes once all its templates are open. It is right
// within some per cent for slices of many events.
func (s *Shard) Memory() (bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	settled := s.sealed.last()
	for _, sl := range s.state.slices {
		held, waiting := sl.templates.memory()
		stored := min(sl.templates.storedRows(), waiting)
		waiting -= stored
		bytes += held
		active, pending := int64(sl.entries.Len()-sl.deleted.Len()), int64(len(sl.pending))
		face := sl.sealedBytes / max(active+pending, 1)
		fresh := int64(sl.entries.Len() - sl.entries.Rank(func(e *entry) bool { return e.Sequence() <= settled }))
		heap := sl.HeapBytes() + sl.entries.Bytes() + fresh*(face+faceBytes) + pending*(face+pendingBytes)
		heap += expiryBytes * int64(sl.times.len())
		bytes += sl.Bytes()
		if m := sl.means.Load(); m != nil {
			heap += m.entries.HeapBytes() + m.patternsBytes()
			bytes += m.entries.Bytes()
			for kind := range m.rows {
				held, more := m.rows[kind].memory()
				bytes, waiting = bytes+held, waiting+more
			}
		}
		bytes += heapGrowth*heap + waiting*face*templateNum/templateDen + stored*face*codesNum/codesDen
	}
	for _, f := range s.state.fences.of {
		if f.remains != nil {
			bytes += f.remains.Table().Bytes() + heapGrowth*(f.remains.Bytes()+f.remains.Table().HeapBytes())
		}
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

// last returns the last sequence whose face is in a segment and no longer in memory.
func (ss *sealedStore) last() uint64 {
	ss.mu.RLock()
	defer ss.mu.RUnlock()
	return ss.set.Last()
}
