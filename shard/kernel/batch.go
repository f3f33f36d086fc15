package kernel

import (
	"runtime"
	"sync"

	"facet/engine/score"
	"facet/shard/scan"
)

const (
	// lanesLeast is how many searches are worth a pass of sixteen lanes.
	lanesLeast = 6
	// laneSlots: rows up to this slot are scanned for one search after the other, so
	// that each has a threshold of its own when the lanes begin.
	laneSlots = 2048
	// lanePiece is pieceSlots in a pass of lanes, so that codes and sums stay in the cache.
	lanePiece = 2048
	// yieldSlots is after how many slots, for a search each, a pass gives way: a fifth of a
	// millisecond, so that a search of few rows need not wait for one of many.
	yieldSlots = 4 * pieceSlots
)

// batches are kept for the next batches.
var batches = sync.Pool{New: func() any { return new(batch) }}

// batch is the memory of sixteen searches on their way through a piece.
type batch struct {
	searches []*search
	lanes    lanes
	masks    [laneCount * lanePiece / groupSlots]uint16
	sums     [laneCount * lanePiece]int32
}

// SearchAll is Search for each of qs, in one pass through memory.
func (m *Matrix) SearchAll(table *score.Table, qs []scan.Query) ([][]scan.Hit, error) {
	requests := make([]request, len(qs))
	for i, q := range qs {
		requests[i].query = q
	}
	searches, err := m.searchAll(table, requests, &active)
	if err != nil {
		return nil, err
	}
	hits := make([][]scan.Hit, len(qs))
	for i, s := range searches {
		hits[i] = s.top.hits()
	}
	return hits, nil
}

// searchAll gives the searches of all requests, which have been through all chunks.
func (m *Matrix) searchAll(table *score.Table, requests []request, k *kernel) ([]*search, error) {
	searches := make([]*search, len(requests))
	var single, laned []*search
	for i := range requests {
		s, err := m.newSearch(table, &requests[i], k)
		if err != nil {
			return nil, err
		}
		searches[i] = s
		// A filter is best used before any code is read.
		if k.lanes == nil || len(s.tags) > 0 || s.scope.Allow != nil || s.probe.bare {
			single = append(single, s)
		} else {
			laned = append(laned, s)
		}
	}
	var passes []*batch
	for len(laned) >= lanesLeast {
		n := min(len(laned), laneCount)
		b := batches.Get().(*batch) //nolint:forcetypeassert // of batches
		defer batches.Put(b)
		b.begin(laned[:n])
		passes = append(passes, b)
		laned = laned[n:]
	}
	m.pass(append(single, laned...), passes)
	return searches, nil
}

// pass takes searches through all chunks, piece by piece, or until all have ended.
func (m *Matrix) pass(single []*search, passes []*batch) {
	w := works.Get().(*work) //nolint:forcetypeassert // of works
	defer works.Put(w)
	work, step := 0, pieceSlots
	if len(passes) > 0 {
		step = lanePiece
	}
	for _, c := range *m.chunks.Load() {
		for from := 0; from < c.slots; from += step {
			w.piece = c.piece(&m.shape, from, step)
			p := &w.piece
			if work += p.slots * (len(single) + laneCount/2*len(passes)); work >= yieldSlots {
				work = 0
				runtime.Gosched()
			}
			running := false
			for _, s := range single {
				if !s.ended() {
					running = true
					w.scan(s, p)
				}
			}
			for _, b := range passes {
				if !b.ended() {
					running = true
					b.scan(w, p)
				}
			}
			if !running {
				break
			}
		}
	}
	for _, s := range single {
		w.end(s)
	}
	for _, b := range passes {
		for _, s := range b.searches {
			w.end(s)
		}
	}
}

// begin prepares for up to sixteen searches.
func (b *batch) begin(searches []*search) {
	b.searches = searches
	shape := searches[0].shape
	b.lanes = lanes{
		lines: shape.lines, probes: make([]int8, shape.lines*planeDims*laneCount),
		masks: b.masks[:], maskStride: 2 * lanePiece / groupSlots,
		sums: b.sums[:], sumStride: 4 * lanePiece,
	}
	for lane, s := range searches {
		for i := range shape.lines * planeDims {
			b.lanes.probes[(i/4*laneCount+lane)*4+i%4] = s.probe.whole[i]
		}
		b.lanes.offset[lane] = s.probe.offset[1]
	}
}

// ended asks whether all searches are to end.
func (b *batch) ended() bool {
	running := false
	for _, s := range b.searches {
		running = !s.ended() || running
	}
	return !running
}

// scan offers the rows of a piece to all searches.
func (b *batch) scan(w *work, c *piece) {
	if c.first < laneSlots {
		for _, s := range b.searches {
			if s.err == nil {
				w.scan(s, c)
			}
		}
		return
	}
	allowed := w.allowed[:len(c.live)]
	if !c.allow(allowed, nil) {
		return
	}
	l := &b.lanes
	for lane, s := range b.searches {
		s.state()
		l.c[lane], l.z[lane] = s.limits[1].c, s.limits[1].z
	}
	l.hi, l.mid, l.groups = c.hi, c.mid, c.slots/groupSlots
	b.searches[0].kernel.lanes(l)
	for lane, s := range b.searches {
		if s.err != nil {
			continue
		}
		c.allow(allowed, nil)
		for i := range c.irregular {
			w.irregular(s, c, i, allowed)
		}
		masks := b.masks[lane*lanePiece/groupSlots:][:l.groups]
		for g := range masks {
			masks[g] &= uint16(allowed[g/blockGroups] >> (g % blockGroups * groupSlots))
		}
		w.settle(s, c, w.slotsOf(masks), 1, b.sums[lane*lanePiece:])
	}
}
