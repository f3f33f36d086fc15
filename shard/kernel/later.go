package kernel

import (
	"math"
	"sync"

	"facet/internal/stale"
)

const (
	// laterMax is how many rows a search defers before it examines them. Each takes 8 bytes.
	laterMax = 1 << 18
	// soonMax is the same for rows that look better than the worst hit. The search examines these
	// early, but enough of them at a time to overlap the waits for memory.
	soonMax = 32
	// lastMax is the same for rows that their codes can't exclude.
	lastMax = 1 << 12
	// fetchMax is how many rows are fetched ahead, so that they stay in the cache.
	fetchMax = 512
)

// This line does not compile if a chunk has more slots than a piece. later.at has slots of a chunk,
// and put and sift write slots of a piece in as many bits.
const _ = uint(pieceSlots - chunkSlots)

// later is a list of deferred rows: their bounds or codes can't exclude them yet. While a search
// for the best few goes on, its limit rises, and excludes most of these rows unread.
type later struct {
	runs []laterRun
	// Each of the n rows has a slot in the chunk, a bound of the plane, and a sum of the plane or
	// of the codes. The slices have room for one group more.
	at     []uint16
	bounds []bound
	sums   []int32
	n      int
}

// laterRun is a run of deferred rows of one chunk. plane is the last plane scanned for them, or
// inCodes.
type laterRun struct {
	chunk      *chunk
	plane      int
	from, rows int
}

func (l *later) room(n int) {
	if n += l.n + groupSlots; n > len(l.at) {
		n += n / 2
		l.at = append(make([]uint16, 0, n), l.at[:l.n]...)[:n]
		l.bounds = append(make([]bound, 0, n), l.bounds[:l.n]...)[:n]
		l.sums = append(make([]int32, 0, n), l.sums[:l.n]...)[:n]
	}
}

// note records that the rows of the list from index from on are rows of chunk c.
func (l *later) note(c *chunk, plane, from int) {
	if l.n == from {
		return
	}
	if n := len(l.runs); n > 0 && l.runs[n-1].chunk == c && l.runs[n-1].plane == plane {
		l.runs[n-1].rows += l.n - from
		return
	}
	l.runs = append(l.runs, laterRun{c, plane, from, l.n - from})
}

func (l *later) reset() {
	clear(l.runs) // chunks
	l.runs, l.n = l.runs[:0], 0
}

const inCodes = planes

// put tells a kernel which rows of a piece to defer.
type put struct {
	masks  []uint64 // the rows
	sums   []int32  // of all slots
	plane  []byte   // blocks
	layout layout
	first  uint32 // slot
	// limit separates rows that look better than the worst hit from other rows.
	limit      limit
	soon, late *later
}

// sift tells a kernel to remove the rows that limit excludes from a part of a list.
type sift struct {
	list       *later
	from, rows int
	limit      limit
	left       int // rows that are left, from index from on
}

// The lists of a search: soon has rows whose planes look better than its worst hit. late has rows
// whose planes look worse. last has rows whose codes look worse.
const (
	soonList = iota
	lateList
	lastList
	lists
)

var laters = sync.Pool{New: func() any { return new([lists]later) }}

// lists returns the lists of the search.
func (s *search) lists() *[lists]later {
	if s.put == nil {
		s.put = laters.Get().(*[lists]later) //nolint:forcetypeassert // of laters
		for i := range s.put {
			stale.Fill(s.put[i].at)
			stale.Fill(s.put[i].sums)
		}
	}
	return s.put
}

// settle handles the rows of a piece that are left after a scan up to plane. rows is their number.
// A search that still lacks hits bounds and compares them at once. Any other search defers them,
// and examines early the rows that look better than its worst hit.
func (w *work) settle(s *search, c *piece, masks []uint64, plane, rows int) {
	s.state()
	if !s.top.full() {
		w.bound(s, c, w.slots(masks), plane)
		return
	}
	soon, late := &s.lists()[soonList], &s.lists()[lateList]
	p := &w.told.put
	*p = put{
		masks: masks, sums: w.sums[:], plane: c.planes[plane], layout: c.chunk.coding.planes[plane].layout,
		first: uint32(c.block * blockSlots), limit: s.turned.looks[plane], soon: soon, late: late,
	}
	soon.room(rows)
	late.room(rows)
	fromSoon, fromLate := soon.n, late.n
	s.kernel.put(p)
	soon.note(c.chunk, plane, fromSoon)
	late.note(c.chunk, plane, fromLate)
	if end := c.first + c.slots; soon.n >= soonMax || end >= 2*s.looked {
		s.looked = end
		w.flush(s, soon)
	}
	if late.n > s.laterMax {
		w.flush(s, late)
	}
}

// flush removes the excluded rows of a list, bounds or compares the others, and empties the list.
func (w *work) flush(s *search, l *later) {
	ahead, fetched := 0, 0
	for i := range l.runs {
		for ; ahead < len(l.runs) && (ahead == i || fetched < fetchMax); ahead++ {
			fetched += w.sift(s, l, &l.runs[ahead])
		}
		run := &l.runs[i]
		fetched -= run.rows
		if run.rows > 0 {
			c, list := run.chunk.piece(s.shape, 0, pieceSlots), l.at[run.from:][:run.rows]
			switch {
			case run.plane < inCodes:
				w.bound(s, &c, list, run.plane)
			case c.vec != nil:
				w.compare(s, &c, list)
			default: // the chunk was warm when they were deferred
				w.bound(s, &c, list, inCodes-1)
			}
		}
	}
	l.reset()
}

// sift removes the rows of a run that are out by now, starts fetching the other rows, and counts
// them.
func (w *work) sift(s *search, l *later, run *laterRun) int {
	s.state()
	if run.plane == inCodes {
		run.rows = l.siftCodes(run, s.turned.row)
		if exact := run.chunk.exact.Load(); exact != nil && run.rows > 0 && s.kernel.fetch != nil {
			s.kernel.fetch(*exact, l.at[run.from:][:run.rows], 4*s.shape.vecNums, 4*s.shape.vecNums)
		}
		return run.rows
	}
	if limit := s.turned.limits[run.plane]; !limit.none {
		f := &w.told.sift
		*f = sift{list: l, from: run.from, rows: run.rows, limit: limit}
		s.kernel.sift(f)
		run.rows = f.left
	}
	if run.rows > 0 && s.kernel.fetch != nil {
		s.kernel.fetch(run.chunk.rows, l.at[run.from:][:run.rows], s.shape.rowBytes, s.rowFetch(run.plane))
	}
	return run.rows
}

// siftCodes removes the rows of a run whose sums are below the limit, and counts the other rows.
func (l *later) siftCodes(run *laterRun, limit int32) int {
	left := run.from
	for i := run.from; i < run.from+run.rows; i++ {
		l.at[left], l.sums[left] = l.at[i], l.sums[i]
		if l.sums[i] >= limit {
			left++
		}
	}
	return left - run.from
}

// bound compares the listed rows that their codes can't exclude. plane is the last plane scanned
// for them. A search that has as many hits as it wants defers rows that look worse than its worst
// hit.
func (w *work) bound(s *search, c *piece, list []uint16, plane int) {
	if c.vec == nil {
		w.boundCold(s, c, list, plane)
		return
	}
	last, base := &s.lists()[lastList], uint16(c.block*blockSlots)
	for len(list) > 0 {
		n := min(len(list), codeRows)
		n, list = w.code(s, c, list[:n], plane), list[n:]
		even := s.turned.even
		if !s.top.full() {
			even = math.MinInt32
		}
		last.room(n)
		left, from := 0, last.n
		for i, at := range w.exact[:n] {
			w.exact[left] = at
			switch sum := w.codes[i]; {
			case sum >= max(even, s.turned.row):
				left++
			case sum >= s.turned.row:
				last.at[last.n], last.sums[last.n] = base+at, sum
				last.n++
			}
		}
		last.note(c.chunk, inCodes, from)
		w.compare(s, c, w.exact[:left])
	}
	if last.n > lastMax {
		w.flush(s, last)
	}
}

// rowFetch returns how many bytes of a row's code to fetch after a scan up to plane. After a first
// plane it fetches the upper half. After the second plane it fetches both halves,
// because that plane has excluded the rows that the upper half could exclude.
func (s *search) rowFetch(plane int) int {
	if plane > 0 {
		return s.shape.rowBytes
	}
	return s.shape.rowBytes / 2
}

// code finds the listed rows that the upper halves of their codes can't exclude. It writes these
// rows to exact and the sums of their codes to codes, and returns their number. list has at most
// codeRows rows.
func (w *work) code(s *search, c *piece, list []uint16, plane int) (left int) {
	r := &w.told.rows
	*r = rows{
		rows: c.rows, list: list, probe: s.turned.whole, sums: w.codes[:len(list)],
		stride: s.shape.rowBytes, fetch: s.rowFetch(plane),
	}
	s.kernel.rows(r)
	s.state()
	for i, at := range list {
		sum := w.codes[i]
		w.exact[left], w.codes[left] = at, sum
		if sum >= s.turned.half {
			left++
		}
	}
	r.rows, r.list, r.sums, r.fetch = c.rows[r.stride/2:], w.exact[:left], w.lower[:left], r.stride/2
	s.kernel.rows(r)
	for i, sum := range r.sums {
		w.codes[i] = w.codes[i]<<4 + sum
	}
	return left
}

// end examines all deferred rows.
func (w *work) end(s *search) {
	if s.put == nil {
		return
	}
	for i := range s.put {
		if s.err == nil {
			w.flush(s, &s.put[i])
		}
		s.put[i].reset()
	}
	laters.Put(s.put)
	s.put = nil
}
