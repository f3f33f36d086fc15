package kernel

import "sync"

const (
	// laterMax is how many rows a search puts off before it looks at them.
	laterMax = 1 << 16
	// soonMax is the same for rows that look better than the worst that is kept: few, but
	// enough to wait for their memory together.
	soonMax = 32
	// fetchMax is how many rows are fetched at once, so that they stay in the cache.
	fetchMax = 512
)

// A slot of a chunk fits where one of a piece does.
const _ = uint(pieceSlots - chunkSlots)

// later are rows that a search puts off because their bounds can't exclude them yet.
// While a search for the best few goes on, its limit rises, and most of them need no
// look at all.
type later struct {
	runs []laterRun
	rows []laterRow
}

// laterRun are rows of one chunk, of which plane was scanned last.
type laterRun struct {
	chunk *chunk
	plane int
	rows  int
}

type laterRow struct {
	at    uint16 // slot in the chunk
	bound bound  // of the plane
	sum   int32  // of the plane, less the offset
}

func (l *later) add(c *chunk, plane int, r laterRow) {
	if n := len(l.runs); n == 0 || l.runs[n-1].chunk != c || l.runs[n-1].plane != plane {
		l.runs = append(l.runs, laterRun{c, plane, 0})
	}
	l.runs[len(l.runs)-1].rows++
	l.rows = append(l.rows, r)
}

func (l *later) reset() {
	clear(l.runs) // chunks
	l.runs, l.rows = l.runs[:0], l.rows[:0]
}

var laters = sync.Pool{New: func() any { return new([2]later) }}

// settle goes on with the rows of a piece that a scan up to plane has left: bounds and
// compares them, or puts them off if the search has all it wants, and
// now only wants better. Those that look better come first, together.
func (w *work) settle(s *search, c *piece, list []uint16, plane int) {
	s.state()
	if !s.top.full() {
		w.bound(s, c, list)
		return
	}
	if s.put == nil {
		s.put = laters.Get().(*[2]later) //nolint:forcetypeassert // of laters
	}
	soon, late := &s.put[0], &s.put[1]
	base := uint16(c.block * blockSlots)
	offset, limit := s.turned.offset[plane], &s.turned.limits[plane]
	for _, at := range list {
		r := laterRow{base + at, c.boundAt(plane, int(at)), w.sums[at] - offset}
		if r.sum < int32(r.bound.a)*int32(limit.c)>>limit.shift {
			late.add(c.chunk, plane, r)
		} else {
			soon.add(c.chunk, plane, r)
		}
	}
	if end := c.first + c.slots; len(soon.rows) >= soonMax || end >= 2*s.looked {
		s.looked = end
		w.flush(s, soon)
	}
	if len(late.rows) > laterMax {
		w.flush(s, late)
	}
}

// flush looks at the rows of a list.
func (w *work) flush(s *search, l *later) {
	rows := w.sift(s, l)
	for _, run := range l.runs {
		n := 0
		s.use(run.chunk.coding)
		s.state()
		limit := &s.turned.limits[run.plane]
		for _, r := range rows[:run.rows] {
			if limit.none || !out(r.sum, r.bound, limit) {
				w.lateList[n] = r.at
				n++
			}
		}
		rows = rows[run.rows:]
		if n > 0 {
			c := run.chunk.piece(s.shape, 0, pieceSlots)
			w.bound(s, &c, w.lateList[:n])
		}
	}
	l.reset()
}

// sift gives the rows of a list without those that are out by now, has the runs count
// what is left, and begins to fetch the first of these.
func (w *work) sift(s *search, l *later) []laterRow {
	left, fetched, from := 0, 0, 0
	for i := range l.runs {
		run := &l.runs[i]
		s.use(run.chunk.coding)
		s.state()
		limit := &s.turned.limits[run.plane]
		n := 0
		for _, r := range l.rows[from : from+run.rows] {
			if limit.none || !out(r.sum, r.bound, limit) {
				w.lateList[n] = r.at
				l.rows[left] = r
				left++
				n++
			}
		}
		from += run.rows
		run.rows = n
		if fetched += n; n > 0 && fetched <= fetchMax && s.kernel.fetch != nil {
			s.kernel.fetch(run.chunk.rows, w.lateList[:n], s.shape.rowBytes)
		}
	}
	return l.rows[:left]
}

// end looks at all that was put off.
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
