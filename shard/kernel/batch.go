package kernel

import (
	"math"
	"runtime"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/internal/stale"
	"facet/shard/scan"
)

const (
	// lanesLeast is how many searches make a pass of sixteen lanes worthwhile.
	lanesLeast = 6
	// laneSlots is how many slots the searches of a batch scan one search at a time, so that each
	// has a threshold of its own before the lanes start.
	laneSlots = 2048
	// lanePiece is the number of slots in a piece when a pass uses lanes.
	lanePiece = 2048
	// yieldSlots is the number of slots, times searches, after which a pass yields: a fifth of a
	// millisecond, so that a search of few rows need not wait for one of many.
	yieldSlots = 4 * pieceSlots
)

// batches keeps batches for reuse.
var batches = sync.Pool{New: func() any { return new(batch) }}

// batch is up to batchMax searches in one pass, and the memory for a piece.
type batch struct {
	searches []*search
	ready    bool // sets have the probes
	sets     [batchMax / laneCount]lanes
	masks    [batchMax * lanePiece / groupSlots]uint16
	turned   []byte
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

// searchAll runs all requests through all chunks and returns their searches.
func (m *Matrix) searchAll(table *score.Table, requests []request, k *kernel) ([]*search, error) {
	searches := make([]*search, len(requests))
	var single, laned []*search
	for i := range requests {
		s, err := m.newSearch(table, &requests[i], k)
		if err != nil {
			return nil, err
		}
		searches[i] = s
		// A tag filter works best before any code is read.
		if k.lanes == nil || len(s.tags) > 0 || s.probe.bare {
			single = append(single, s)
		} else {
			laned = append(laned, s)
		}
	}
	var passes []*batch
	for len(laned) >= lanesLeast {
		n := min(len(laned), batchMax)
		if n%laneCount < lanesLeast {
			n -= n % laneCount
		}
		b := batches.Get().(*batch) //nolint:forcetypeassert // of batches
		defer batches.Put(b)
		stale.Fill(b.masks[:])
		stale.Fill(b.turned[:cap(b.turned)])
		b.begin(laned[:n])
		passes = append(passes, b)
		laned = laned[n:]
	}
	m.pass(append(single, laned...), passes)
	return searches, nil
}

// pass runs searches through all chunks until all have ended.
func (m *Matrix) pass(single []*search, passes []*batch) {
	w := works.Get().(*work) //nolint:forcetypeassert // of works
	defer works.Put(w)
	w.spoil()
	m.run(w, single, passes)
}

// run is pass with the memory for it.
func (m *Matrix) run(w *work, single []*search, passes []*batch) {
	all := single
	for _, b := range passes {
		all = append(slices.Clip(all), b.searches...)
	}
	m.through(w, single, passes)
	w.fetch(all, 0)
	var again []*search
	for _, s := range all {
		if s.err == nil && !s.top.justified() {
			s.restart()
			again = append(again, s)
		}
	}
	if len(again) > 0 {
		m.through(w, again, nil)
		w.fetch(again, 0)
	}
}

// through leads searches through all chunks, piece by piece. What they want of cold chunks is left.
func (m *Matrix) through(w *work, single []*search, passes []*batch) {
	number := m.passes.begin()
	work, step := 0, pieceSlots
	if len(passes) > 0 {
		step = lanePiece
	}
	for _, c := range *m.chunks.Load() {
		for from := 0; from < c.slots; from += step {
			w.piece = c.piece(&m.shape, from, step)
			p := &w.piece
			if work += p.slots * (len(single) + batchMax/2*len(passes)); work >= yieldSlots {
				work = 0
				runtime.Gosched()
			}
			running := false
			for _, s := range single {
				if !s.ended() {
					running = true
					s.share()
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
	end := func(s *search) {
		s.share()
		w.end(s)
		s.share()
	}
	for _, s := range single {
		end(s)
	}
	for _, b := range passes {
		for _, s := range b.searches {
			end(s)
		}
	}
	m.discard(m.passes.end(number))
}

func (b *batch) begin(searches []*search) {
	b.searches, b.ready = searches, false
	if size := turnSlots * searches[0].shape.rowBytes; cap(b.turned) < size {
		b.turned = make([]byte, size)
	}
}

// turn rotates, rounds and interleaves the probes of the batch. A second call does nothing.
func (b *batch) turn() {
	if b.ready {
		return
	}
	b.ready = true
	shape := b.searches[0].shape
	for i := range b.sets {
		b.sets[i].lines = shape.rowBytes / 4
		b.sets[i].probes = make([]int8, shape.rowBytes*laneCount)
		b.sets[i].maskStride = 2 * lanePiece / groupSlots
	}
	for at, s := range b.searches {
		s.turn()
		set, lane := &b.sets[at/laneCount], at%laneCount
		for i, n := range s.turned.whole {
			set.probes[(i/4*laneCount+lane)*4+i%4] = n
		}
	}
	if drop := b.searches[0].kernel.drop; drop > 0 {
		for i := range b.sets {
			b.sets[i].run(drop)
		}
	}
}

// run divides the lines into the longest runs whose sums of pairs of products fit 16 bits, whatever the
// rows are. One line fits if six bits of a code are left.
func (l *lanes) run(drop uint) {
	var least, most [2 * laneCount]int32 // of each pair
	add := func(line int) (fits bool) {
		fits = true
		for i, n := range l.probes[line*laneCount*4:][:laneCount*4] {
			product := int32(n) * (math.MaxUint8 >> drop)
			least[i/2] += min(product, 0)
			most[i/2] += max(product, 0)
			fits = fits && least[i/2] >= math.MinInt16 && most[i/2] <= math.MaxInt16
		}
		return fits
	}
	l.runs = l.runs[:0]
	for line := range l.lines {
		last := len(l.runs) - 1
		if fits := add(line); fits && last >= 0 && l.runs[last] < math.MaxUint8 {
			l.runs[last]++
			continue
		}
		clear(least[:])
		clear(most[:])
		add(line)
		l.runs = append(l.runs, 1)
	}
}

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
	if c.allow(allowed, nil) == 0 {
		return
	}
	b.turn()
	for at, s := range b.searches {
		s.share()
		s.state()
		b.sets[at/laneCount].limits[at%laneCount] = s.turned.laneLimit(s.kernel.drop)
	}
	b.multiply(c)
	for at, s := range b.searches {
		if s.err != nil {
			continue
		}
		c.allow(allowed, nil)
		c.note(s, allowed)
		for i := range c.irregular {
			w.irregular(s, c, i, allowed)
		}
		masks := b.masks[at*lanePiece/groupSlots:][:c.slots/groupSlots]
		for i := range allowed {
			word := masks[4*i:][:4]
			allowed[i] &= uint64(word[0]) | uint64(word[1])<<16 | uint64(word[2])<<32 | uint64(word[3])<<48
		}
		if c.vec == nil || s.kernel.drop > 0 {
			w.bound(s, c, w.slots(allowed), planes-1)
			continue
		}
		w.compare(s, c, w.slots(allowed))
	}
}

// multiply fills the masks of all searches for a piece.
func (b *batch) multiply(c *piece) {
	shape, kernel := b.searches[0].shape, b.searches[0].kernel
	t := turn{to: b.turned[:turnSlots*shape.rowBytes], stride: shape.rowBytes}
	for from := 0; from < c.slots; from += turnSlots {
		n := min(c.slots-from, turnSlots)
		t.rows, t.groups = c.rows[from*shape.rowBytes:][:n*shape.rowBytes], n/groupSlots
		kernel.turn(&t)
		for i := 0; i*laneCount < len(b.searches); i++ {
			l := &b.sets[i]
			l.turned, l.groups, l.ahead = t.to, t.groups, c.rows[min(from+turnSlots, c.slots-turnSlots)*shape.rowBytes:]
			l.masks = b.masks[(i*laneCount*lanePiece+from)/groupSlots:]
			kernel.lanes(l)
		}
	}
}
