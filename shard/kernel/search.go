package kernel

import (
	"fmt"
	"math"
	"math/bits"
	"sync"

	"facet/engine/score"
	"facet/shard/scan"
)

const (
	// exactRows is how many candidates are compared before the limits are stated anew.
	exactRows = 64
	// restRows are bounded by their rests at a time, more than exactRows to keep fetches
	// in flight.
	restRows = 256
	// pieceSlots are scanned at a time, so that what a search notes about them, and
	// in a batch their codes, stay in the cache.
	pieceSlots = 2048
	// midShare: if more than one row of so many is left after the first plane, reading
	// the second one, in order, is cheaper than reading the rests of rows here and there.
	midShare = 10
)

// Search gives the hits of q exactly as scan.TopK gives them for the rows that are
// there. Writes that run beside it may be seen or not, each as a whole. Errors
// wrap ErrTemplate.
func (m *Matrix) Search(table *score.Table, q scan.Query) ([]scan.Hit, error) {
	s, err := m.newSearch(table, &q, &active)
	if err != nil {
		return nil, err
	}
	return m.run(s), nil
}

// run takes a search through all chunks.
func (m *Matrix) run(s *search) []scan.Hit {
	w := works.Get().(*work) //nolint:forcetypeassert // of works
	defer works.Put(w)
	for _, c := range *m.chunks.Load() {
		for from := 0; from < c.slots; from += pieceSlots {
			w.scan(s, c.piece(&m.shape, from))
		}
	}
	return s.top.hits()
}

// search is one query on its way through the chunks.
type search struct {
	shape  *shape
	kernel *kernel
	probe  *probe
	tags   []uint32
	top    *top
	limits [planes]limit
	least  float32 // of which limits are
}

func (m *Matrix) newSearch(table *score.Table, q *scan.Query, k *kernel) (*search, error) {
	if err := m.shape.check(q.Probe); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	s := &search{
		shape:  &m.shape,
		kernel: k,
		probe:  newProbe(&m.shape, rotationOf(m.shape.dim), q.Probe),
		tags:   q.Tags,
		top:    newTop(table, q),
		least:  float32(math.NaN()),
	}
	s.state()
	return s, nil
}

// state states the limits for what the top wants by now.
func (s *search) state() {
	if s.least != s.top.least {
		s.least = s.top.least
		s.limits = s.probe.limits(s.least)
	}
}

// bounded tells whether the limits can exclude anything.
func (s *search) bounded() bool { return !math.IsInf(float64(s.limits[0].c), -1) }

// works are kept for the next searches.
var works = sync.Pool{New: func() any { return new(work) }}

// work is the memory of a search, for one piece of a chunk at a time.
type work struct {
	allowed [pieceSlots / blockSlots]uint64
	masks   [pieceSlots / groupSlots]uint16
	sums    [2 * pieceSlots]int32 // of hi, and a place for those of mid
	list    [pieceSlots]uint16
	some    [pieceSlots / groupSlots]uint16

	rests  [restRows]int32
	exact  [restRows]uint16
	owners [exactRows]*Owner
	dots   [exactRows]float32
}

// scan offers the rows of a piece that may be among the best.
func (w *work) scan(s *search, c *piece) {
	allowed := w.allowed[:len(c.live)]
	if !c.allow(allowed, s.tags) {
		return
	}
	s.state()
	if c.flat || s.kernel.groups == nil || !s.bounded() {
		w.compare(s, c, w.slots(allowed))
		return
	}
	for i := range c.irregular {
		w.irregular(s, c, i, allowed)
	}
	masks := w.masks[:4*len(allowed)]
	for i, word := range allowed {
		masks[4*i], masks[4*i+1] = uint16(word), uint16(word>>16)
		masks[4*i+2], masks[4*i+3] = uint16(word>>32), uint16(word>>48)
	}
	p := plane{
		codes: c.hi, masks: masks, sums: w.sums[:], probe: s.probe.whole, lines: s.shape.lines,
		layout: s.shape.plane, fetch: s.shape.lines + 1, offset: s.probe.offset[0], limit: s.limits[0], shift: 32,
	}
	w.plane(s, &p)
	if left(masks) > c.slots/midShare {
		p.codes, p.offset, p.limit, p.shift, p.keep = c.mid, s.probe.offset[1], s.limits[1], 2, pieceSlots
		w.plane(s, &p)
	}
	w.rest(s, c, w.slotsOf(masks), known{w.sums[:], hiWeight, midShift})
}

// plane scans a plane with what is faster.
func (w *work) plane(s *search, p *plane) {
	p.list = w.groups(p.masks)
	if s.kernel.blocks != nil && 2*len(p.list) > len(p.masks) {
		s.kernel.blocks(p)
	} else {
		s.kernel.groups(p)
	}
}

// left counts the slots in masks.
func left(masks []uint16) (n int) {
	for _, mask := range masks {
		n += bits.OnesCount16(mask)
	}
	return n
}

// groups lists the groups that have a bit set, without a branch on it.
func (w *work) groups(masks []uint16) []uint16 {
	n := 0
	for i, mask := range masks {
		w.some[n] = uint16(i)
		n += int((uint32(mask) + 0xffff) >> 16)
	}
	return w.some[:n]
}

// slots lists the slots whose bits are set.
func (w *work) slots(words []uint64) []uint16 {
	n := 0
	for i, word := range words {
		for ; word != 0; word &= word - 1 {
			w.list[n] = uint16(i*blockSlots + bits.TrailingZeros64(word))
			n++
		}
	}
	return w.list[:n]
}

func (w *work) slotsOf(masks []uint16) []uint16 {
	n := 0
	for i, mask := range masks {
		for ; mask != 0; mask &= mask - 1 {
			w.list[n] = uint16(i*groupSlots + bits.TrailingZeros16(mask))
			n++
		}
	}
	return w.list[:n]
}

// irregular compares the allowed rows without bounds of a block and takes them off.
func (w *work) irregular(s *search, c *piece, block int, allowed []uint64) {
	word := c.irregular[block].Load() & allowed[block]
	if word == 0 {
		return
	}
	allowed[block] &^= word
	n := 0
	for ; word != 0; word &= word - 1 {
		w.list[n] = uint16(block*blockSlots + bits.TrailingZeros64(word))
		n++
	}
	w.compare(s, c, w.list[:n])
}

// known are the sums of what was scanned of the rows of a piece, what they weigh in the
// whole code, and how mid is to be shifted to complete it.
type known struct {
	sums   []int32
	weight int32
	shift  uint64
}

// rest bounds the listed rows with all bits and compares those that are left.
func (w *work) rest(s *search, c *piece, list []uint16, k known) {
	r := rests{rows: c.rest, probe: s.probe.whole, stride: s.shape.rest, units: s.shape.units, shift: k.shift}
	for len(list) > 0 {
		n := min(len(list), restRows)
		r.list, r.sums = list[:n], w.rests[:n]
		list = list[n:]
		s.kernel.rests(&r)
		s.state()
		left := 0
		for i, at := range r.list {
			alpha, tan := c.restBound(s.shape, int(at))
			if !out(k.weight*k.sums[at]+r.sums[i], s.probe.offset[2], alpha, tan, s.limits[2]) {
				w.exact[left] = at
				left++
			}
		}
		w.compare(s, c, w.exact[:left])
	}
}

// compare compares the listed rows exactly and offers them.
func (w *work) compare(s *search, c *piece, list []uint16) {
	d := dots{rows: c.vec, probe: s.probe.nums}
	for len(list) > 0 {
		n := min(len(list), exactRows)
		d.list, d.dots = list[:n], w.dots[:n]
		list = list[n:]
		for i, at := range d.list {
			w.owners[i] = c.owners[at].Load()
		}
		s.kernel.dots(&d)
		for i, at := range d.list {
			o := w.owners[i]
			// Another owner by now: the vector may be half of one and half of the other.
			if o != nil && !(d.dots[i] < s.top.least) && c.owners[at].Load() == o {
				s.top.offer(d.dots[i], o)
			}
		}
	}
}
