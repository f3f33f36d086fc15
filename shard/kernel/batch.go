package kernel

import (
	"sync"

	"facet/engine/score"
	"facet/shard/scan"
)

const (
	// lanesLeast is how many searches are worth a pass of sixteen lanes.
	lanesLeast = 6
	// laneSlots: rows up to this slot are scanned for one search after the other, so
	// that each has a threshold of its own when the lanes begin.
	laneSlots = pieceSlots
)

// batches are kept for the next batches.
var batches = sync.Pool{New: func() any { return new(batch) }}

// batch is the memory of sixteen searches on their way through a piece.
type batch struct {
	searches []*search
	lanes    lanes
	masks    [laneCount * pieceSlots / groupSlots]uint16
	sums     [laneCount * pieceSlots]int32
}

// SearchAll is Search for each of qs, in one pass through memory.
func (m *Matrix) SearchAll(table *score.Table, qs []scan.Query) ([][]scan.Hit, error) {
	return m.searchAll(table, qs, &active)
}

func (m *Matrix) searchAll(table *score.Table, qs []scan.Query, k *kernel) ([][]scan.Hit, error) {
	searches := make([]*search, len(qs))
	var single, laned []*search
	for i := range qs {
		s, err := m.newSearch(table, &qs[i], k)
		if err != nil {
			return nil, err
		}
		searches[i] = s
		// A filter is best used before any code is read.
		if k.lanes == nil || len(s.tags) > 0 || s.probe.bare {
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
	hits := make([][]scan.Hit, len(qs))
	for i, s := range searches {
		hits[i] = s.top.hits()
	}
	return hits, nil
}

// pass takes searches through all chunks, piece by piece.
func (m *Matrix) pass(single []*search, passes []*batch) {
	w := works.Get().(*work) //nolint:forcetypeassert // of works
	defer works.Put(w)
	slot := 0
	for _, c := range *m.chunks.Load() {
		for from := 0; from < c.slots; from += pieceSlots {
			p := c.piece(&m.shape, from)
			for _, s := range single {
				w.scan(s, p)
			}
			for _, b := range passes {
				b.scan(w, p, slot)
			}
			slot += p.slots
		}
	}
}

// begin prepares for up to sixteen searches.
func (b *batch) begin(searches []*search) {
	b.searches = searches
	shape := searches[0].shape
	b.lanes = lanes{
		lines: shape.lines, probes: make([]int8, shape.lines*planeDims*laneCount),
		masks: b.masks[:], maskStride: 2 * pieceSlots / groupSlots,
		sums: b.sums[:], sumStride: 4 * pieceSlots,
	}
	for lane, s := range searches {
		for i := range shape.lines * planeDims {
			b.lanes.probes[(i/4*laneCount+lane)*4+i%4] = s.probe.whole[i]
		}
		b.lanes.offset[lane] = s.probe.offset[1]
	}
}

// scan offers the rows of a piece, which begins with slot, to all searches.
func (b *batch) scan(w *work, c *piece, slot int) {
	if slot < laneSlots {
		for _, s := range b.searches {
			w.scan(s, c)
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
		c.allow(allowed, nil)
		for i := range c.irregular {
			w.irregular(s, c, i, allowed)
		}
		masks := b.masks[lane*pieceSlots/groupSlots:][:l.groups]
		for g := range masks {
			masks[g] &= uint16(allowed[g/blockGroups] >> (g % blockGroups * groupSlots))
		}
		w.rest(s, c, w.slotsOf(masks), known{b.sums[lane*pieceSlots:], midWeight, 32})
	}
}
