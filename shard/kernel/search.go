package kernel

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/internal/stale"
	"facet/shard/scan"
)

const (
	// exactRows is how many rows are compared before the limits are computed again.
	exactRows = 64
	// codeRows is how many rows are bounded by their codes at a time: more than exactRows, to keep
	// fetches in flight.
	codeRows = 256
	// pieceSlots is how many slots are scanned at a time. Their masks and sums fit the cache, and a
	// scan seldom pauses between pieces.
	pieceSlots = 8192
	// midShare: if more than one row in midShare is left after the first plane, reading the second
	// plane in order is faster than reading the codes of scattered rows.
	midShare = 12
	// blocksShare: if more than one slot in blocksShare is wanted, scanning all is faster than
	// scanning their groups only.
	blocksShare = 48
	// sparseShare: if fewer than one slot in sparseShare is wanted, no code is read.
	sparseShare = 32
)

// Search returns the hits of q exactly as scan.TopK does for the rows of the matrix. A concurrent
// write is seen as a whole or not at all. Errors wrap ErrTemplate.
func (m *Matrix) Search(table *score.Table, q scan.Query) ([]scan.Hit, error) {
	s, err := m.newSearch(table, &request{query: q}, &active)
	if err != nil {
		return nil, err
	}
	m.pass([]*search{s}, nil)
	return s.result()
}

// request is a query. The search calls stop, if it is not nil, before every piece, and ends with
// its error.
type request struct {
	query scan.Query
	stop  func() error
	ctx   context.Context // of the source; nil is one that doesn't end
}

// search is the state of one query on its way through the chunks.
type search struct {
	owners   Owners
	shape    *shape
	coding   *coding
	kernel   *kernel
	probe    *probe
	tags     []uint32
	stop     func() error
	ctx      context.Context
	matrix   *Matrix
	put      *[lists]later // nil if nothing was deferred
	wanted   []wanted      // cold rows to be fetched
	looked   int           // slots scanned at the last look at soon
	scores   []int         // as the search last told the shared floor
	told     int           // changes of the top when the search last raised the shared floor
	laterMax int           // the constant, except in tests
	// keep reports whether the sums of the first plane are needed: by the second plane, or for
	// deferred rows. Writing them takes 4 % of a search.
	keep bool
	// exact reports whether warm rows are compared at once: the processor has no vector
	// instructions.
	exact  bool
	err    error // from stop or the source: the search has ended
	top    *top
	turned *turned // nil until it is needed
}

func (m *Matrix) newSearch(table *score.Table, r *request, k *kernel) (*search, error) {
	q := &r.query
	if err := m.shape.check(q.Probe); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	s := &search{
		owners:   m.owners,
		shape:    &m.shape,
		coding:   m.coding,
		kernel:   k,
		probe:    newProbe(&m.shape, q.Probe),
		tags:     q.Tags,
		stop:     r.stop,
		ctx:      cmp.Or(r.ctx, context.Background()),
		matrix:   m,
		top:      newTop(table, q),
		laterMax: laterMax,
	}
	s.forget()
	if s.exact = k.groups == nil; s.exact {
		decoding := portable // of cold rows
		decoding.dots = k.dots
		s.kernel = &decoding
	}
	return s, nil
}

// restart readies the search for another pass, after rows that had raised its limit were erased.
func (s *search) restart() {
	s.top = newTop(s.top.table, s.top.query)
	s.top.sure = true
	s.forget()
	s.wanted, s.looked, s.keep = nil, 0, false
}

// forget readies the coverage of the search, if it has one, for a pass.
func (s *search) forget() {
	if c := s.top.query.Coverage; c != nil {
		last := 0
		if chunks := *s.matrix.chunks.Load(); len(chunks) > 0 {
			last = chunks[len(chunks)-1].first + chunks[len(chunks)-1].slots
		}
		c.Reset(last)
	}
}

// share raises the floor that searches of several matrices share, and then the limit to that floor.
// Pages of subjects by their ids have no use for it.
func (s *search) share() {
	t := s.top
	floor := t.query.Floor
	if floor == nil || t.query.After != nil {
		return
	}
	changes := t.changes
	if t.floor != nil {
		changes += t.floor.changes
	}
	if changes != s.told && !t.sure {
		s.told = changes
		s.scores = t.scores(s.scores[:0])
		floor.Raise(s.matrix, s.scores)
	}
	t.share(floor.Least())
}

// tagged reports whether an owner has one of the tags that the search wants.
func (s *search) tagged(owner uint32) bool {
	return len(s.tags) == 0 || scan.Tagged(s.owners.Tags(s.owners.Owner(owner)), s.tags)
}

// ended reports whether the search has ended.
func (s *search) ended() bool {
	if s.err == nil && s.stop != nil {
		s.err = s.stop()
	}
	return s.err != nil
}

// result returns the hits after the last chunk.
func (s *search) result() ([]scan.Hit, error) {
	if s.err != nil {
		return nil, fmt.Errorf("search: %w", s.err)
	}
	return s.top.hits(), nil
}

func (s *search) turn() {
	if s.turned == nil {
		s.turned = s.probe.turn(s.shape, s.coding)
	}
}

// state updates the limits to the least similarity that the top admits now.
func (s *search) state() { s.turned.state(s.top.least) }

// bounded reports whether the limits of planes, and those of rows, can exclude any row.
func (s *search) bounded() (planes, rows bool) {
	return !s.turned.limits[0].none, s.turned.row > math.MinInt32
}

// works keeps the memory of searches for reuse.
var works = sync.Pool{New: func() any { return new(work) }}

// work is the memory of a search for one piece at a time.
type work struct {
	piece   piece
	allowed [pieceSlots / blockSlots]uint64
	sums    [pieceSlots]int32
	list    [pieceSlots]uint16
	some    [pieceSlots / groupSlots]uint16

	// told has the arguments of kernels. Without it they would be allocated for each piece.
	told struct {
		plane plane
		put   put
		sift  sift
		rows  rows
		dots  dots
	}

	codes  [codeRows]int32
	lower  [codeRows]int32
	exact  [codeRows]uint16
	owners [exactRows]uint32
	dots   [exactRows]float32
	before [codeRows]uint32 // owners

	wave wave
}

// spoil overwrites the values of an earlier search in builds with the tag stale.
func (w *work) spoil() {
	stale.Fill(w.allowed[:])
	stale.Fill(w.sums[:])
	stale.Fill(w.list[:])
	stale.Fill(w.some[:])
	stale.Fill(w.codes[:])
	stale.Fill(w.lower[:])
	stale.Fill(w.exact[:])
	stale.Fill(w.dots[:])
	stale.Fill(w.wave.exact[:cap(w.wave.exact)])
}

// scan offers those rows of a piece that may be among the best.
func (w *work) scan(s *search, c *piece) {
	allowed := w.allowed[:len(c.live)]
	share := c.allow(allowed, s.tags)
	c.note(s, allowed)
	if share == 0 {
		return
	}
	cold, sparse := c.vec == nil, share < c.slots/sparseShare
	if !cold && (c.flat || s.exact || sparse) {
		w.compare(s, c, w.slots(allowed))
		return
	}
	s.turn()
	s.state()
	inPlanes, inRows := s.bounded()
	if !cold && !inRows {
		w.compare(s, c, w.slots(allowed))
		return
	}
	for i := range c.irregular { // none, nearly always
		w.irregular(s, c, i, allowed)
	}
	if !inPlanes || cold && (sparse || !inRows) {
		w.bound(s, c, w.slots(allowed), 0)
		return
	}
	s.keep = s.keep || s.top.full()
	scanned := 0
	w.plane(s, c, 0, allowed, share)
	if share = left(allowed); share > c.slots/midShare {
		scanned = 1
		if !s.keep { // once a search
			s.keep = true
			w.plane(s, c, 0, allowed, share)
		}
		w.plane(s, c, 1, allowed, share)
		share = left(allowed)
	}
	if share > 0 {
		w.settle(s, c, allowed, scanned, share)
	}
}

// plane scans a plane, with the faster method for the number of slots that are left.
func (w *work) plane(s *search, c *piece, number int, masks []uint64, share int) {
	shape := &c.chunk.coding.planes[number]
	t := s.turned
	p := &w.told.plane
	*p = plane{
		codes: c.planes[number], masks: masks, sums: w.sums[:],
		coarse: t.whole, fine: t.whole[shape.first:], coarseLines: shape.coarse, fineLines: shape.fine, run: t.run,
		layout: shape.layout, shift: shape.shift, limit: t.limits[number],
	}
	if s.kernel.blocks != nil && share > c.slots/blocksShare {
		if !s.keep {
			p.sums = nil
		}
		s.kernel.blocks(p)
		return
	}
	p.list = w.groups(masks)
	s.kernel.groups(p)
}

func left(masks []uint64) (n int) {
	for _, mask := range masks {
		n += bits.OnesCount64(mask)
	}
	return n
}

// groups lists the groups with a bit set, without branching on it.
func (w *work) groups(masks []uint64) []uint16 {
	n := 0
	for i, mask := range masks {
		for g := range blockGroups {
			w.some[n] = uint16(i*blockGroups + g)
			n += int((uint32(uint16(mask>>(g*groupSlots))) + 0xffff) >> 16)
		}
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

// irregular compares the allowed rows of a block that have no bounds, and clears their bits.
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

// compare compares the listed rows exactly and offers them, or wants them if they are cold.
func (w *work) compare(s *search, c *piece, list []uint16) {
	if c.vec == nil {
		for _, at := range list {
			s.want(c, at, c.owners[at].Load(), noBounds)
		}
		w.fetchExcess(s)
		return
	}
	d := &w.told.dots
	*d = dots{rows: c.vec, probe: s.probe.nums}
	for len(list) > 0 {
		n := min(len(list), exactRows)
		d.list, d.dots = list[:n], w.dots[:n]
		list = list[n:]
		for i, at := range d.list {
			w.owners[i] = c.owners[at].Load()
		}
		// A row that came after Chill is not in vec. If one of these has, Chill is seen here.
		if c.chunk.exact.Load() != c.exact {
			w.boundChilled(s, c, append(slices.Clone(d.list), list...))
			return
		}
		s.kernel.dots(d)
		for i, at := range d.list {
			o := w.owners[i]
			// If the slot has another owner by now, the vector may be half of one and half of the
			// other. If the owner changed since the tags were looked up, its event may not have the
			// tags.
			if o != 0 && !(d.dots[i] < s.top.least) && c.owners[at].Load() == o && s.tagged(o) {
				s.top.offer(d.dots[i], s.owners.Owner(o))
			}
		}
	}
}
