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
	// pieceSlots are scanned at a time: what a search notes about them stays in the cache,
	// and few pauses are made.
	pieceSlots = 8192
	// midShare: if more than one row of so many is left after the first plane, reading
	// the second one, in order, is cheaper than reading the rests of rows here and there.
	midShare = 12
	// sparseShare: of fewer than one slot of so many no code is read.
	sparseShare = 32
)

// Scope narrows a search beyond its query, and ends it early. The zero Scope does neither.
type Scope struct {
	// Allow has a bit a slot, 64 a word, for the slots that may be found; those beyond
	// its end may not. Nil allows all. It must not change while the search runs.
	Allow []uint64
	// Stop is asked before every 8192 slots; an error of it ends the search. Nil never does.
	Stop func() error
}

// Search gives the hits of q exactly as scan.TopK gives them for the rows that are
// there. Writes that run beside it may be seen or not, each as a whole. Errors
// wrap ErrTemplate.
func (m *Matrix) Search(table *score.Table, q scan.Query) ([]scan.Hit, error) {
	return m.SearchIn(table, q, Scope{})
}

// SearchIn is Search among the slots of scope. Errors may wrap that of scope.Stop, too.
func (m *Matrix) SearchIn(table *score.Table, q scan.Query, scope Scope) ([]scan.Hit, error) {
	s, err := m.newSearch(table, &request{q, scope}, &active)
	if err != nil {
		return nil, err
	}
	m.pass([]*search{s}, nil)
	return s.result()
}

// request is a query with its scope.
type request struct {
	query scan.Query
	scope Scope
}

// search is one query on its way through the chunks.
type search struct {
	shape  *shape
	kernel *kernel
	probe  *probe
	tags   []uint32
	scope  Scope
	put    *[2]later // soon and late; nil without
	looked int       // slots that were scanned when soon was looked at
	err    error     // of scope.Stop: the search has ended
	top    *top
	limits [planes]limit
	least  float32 // of which limits are
}

func (m *Matrix) newSearch(table *score.Table, r *request, k *kernel) (*search, error) {
	q := &r.query
	if err := m.shape.check(q.Probe); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	s := &search{
		shape:  &m.shape,
		kernel: k,
		probe:  newProbe(&m.shape, rotationOf(m.shape.dim), q.Probe),
		tags:   q.Tags,
		scope:  r.scope,
		top:    newTop(table, q),
		least:  float32(math.NaN()),
	}
	s.state()
	return s, nil
}

// ended asks whether the search is to end.
func (s *search) ended() bool {
	if s.err == nil && s.scope.Stop != nil {
		s.err = s.scope.Stop()
	}
	return s.err != nil
}

// result gives the hits of a search that has been through all chunks.
func (s *search) result() ([]scan.Hit, error) {
	if s.err != nil {
		return nil, fmt.Errorf("search: %w", s.err)
	}
	return s.top.hits(), nil
}

// narrow takes the slots off that are not in the scope of the search, and tells if any are left.
func (s *search) narrow(c *piece, allowed []uint64) bool {
	if s.scope.Allow == nil {
		return true
	}
	var any uint64
	for i := range allowed {
		var word uint64
		if at := c.first/blockSlots + i; at < len(s.scope.Allow) {
			word = s.scope.Allow[at] >> (c.first % blockSlots)
		}
		allowed[i] &= word
		any |= allowed[i]
	}
	return any != 0
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
	piece   piece
	allowed [pieceSlots / blockSlots]uint64
	masks   [pieceSlots / groupSlots]uint16
	sums    [pieceSlots]int32
	list    [pieceSlots]uint16
	some    [pieceSlots / groupSlots]uint16

	rests  [restRows]int32
	exact  [restRows]uint16
	owners [exactRows]*Owner
	dots   [exactRows]float32

	lateList [pieceSlots]uint16 // of flush
	lateSums [pieceSlots]int32
}

// scan offers the rows of a piece that may be among the best.
func (w *work) scan(s *search, c *piece) {
	allowed := w.allowed[:len(c.live)]
	if !c.allow(allowed, s.tags) || !s.narrow(c, allowed) {
		return
	}
	s.state()
	if c.flat || s.kernel.groups == nil || !s.bounded() || sparse(allowed) {
		w.compare(s, c, w.slots(allowed))
		return
	}
	for i := range c.irregular { // none, nearly always
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
	scanned := 0
	if left(masks) > c.slots/midShare {
		scanned = 1
		p.codes, p.offset, p.limit, p.shift = c.mid, s.probe.offset[1], s.limits[1], 2
		w.plane(s, &p)
	}
	w.settle(s, c, w.slotsOf(masks), scanned, w.sums[:])
}

// sparse tells whether so few slots are allowed that comparing them, whose numbers
// lie together, is faster than reading codes, a group of which is as long as a vector.
func sparse(allowed []uint64) bool {
	n := 0
	for _, word := range allowed {
		n += bits.OnesCount64(word)
	}
	return n < len(allowed)*blockSlots/sparseShare
}

// plane scans a plane with what is faster.
func (w *work) plane(s *search, p *plane) {
	if s.kernel.blocks != nil && 4*some(p.masks) > len(p.masks) {
		s.kernel.blocks(p)
		return
	}
	p.list = w.groups(p.masks)
	s.kernel.groups(p)
}

// some counts the groups that have a bit set.
func some(masks []uint16) (n int) {
	for _, mask := range masks {
		n += int((uint32(mask) + 0xffff) >> 16)
	}
	return n
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
	for i := 0; i+blockGroups <= len(masks); i += blockGroups {
		word := uint64(masks[i]) | uint64(masks[i+1])<<16 | uint64(masks[i+2])<<32 | uint64(masks[i+3])<<48
		for ; word != 0; word &= word - 1 {
			w.list[n] = uint16(i*groupSlots + bits.TrailingZeros64(word))
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
			// Another owner by now: the vector may be half of one and half of the other. Another
			// owner since the tags were looked up: it may not have them.
			if o != nil && !(d.dots[i] < s.top.least) && c.owners[at].Load() == o && scan.Tagged(o.Tags, s.tags) {
				s.top.offer(d.dots[i], o)
			}
		}
	}
}
