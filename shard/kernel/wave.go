package kernel

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"facet/engine/score"
)

const (
	// waveLeast is how many rows a search fetches in its first wave. Each further wave has twice as
	// many.
	waveLeast = 32
	// waveMost is how many rows the wave of all searches of a pass has at most.
	waveMost = 512
	// wantedMax is how many cold rows a search notes before it fetches some. Each takes 24 bytes.
	wantedMax = 1 << 12
	// noBounds stands for the sum of a row without bounds. No code has it.
	noBounds = math.MaxInt32
)

// wanted is a cold row that its code can't exclude.
type wanted struct {
	chunk *chunk
	owner uint32
	sum   int32  // of the code
	at    uint16 // slot of the chunk
}

// boundCold is bound for rows of a cold chunk. Their codes must not change between the looks at
// their owners, because their lower bounds raise the limit.
func (w *work) boundCold(s *search, c *piece, list []uint16, plane int) {
	for len(list) > 0 {
		some := list[:min(len(list), codeRows)]
		list = list[len(some):]
		regular := some[:0]
		for _, at := range some {
			switch o := c.owners[at].Load(); {
			case c.isIrregular(at): // and it stays so while the owner is the same
				s.want(c, at, o, noBounds)
			default:
				w.before[len(regular)] = o
				regular = append(regular, at)
			}
		}
		n, j := w.code(s, c, regular, plane), 0
		for i, at := range w.exact[:n] {
			for regular[j] != at {
				j++
			}
			if sum := w.codes[i]; sum >= s.turned.row {
				s.want(c, at, w.before[j], sum)
			}
		}
		w.fetchExcess(s)
	}
}

// fetchExcess fetches wanted rows if the search has noted too many.
func (w *work) fetchExcess(s *search) {
	if len(s.wanted) > wantedMax {
		w.fetch([]*search{s}, wantedMax/2)
	}
}

// boundChilled is boundCold for rows of a chunk that was warm when the search came to the piece.
func (w *work) boundChilled(s *search, c *piece, list []uint16) {
	cold := *c
	cold.exact, cold.vec = nil, nil
	s.turn()
	w.boundCold(s, &cold, list, planes-1)
}

func (c *piece) isIrregular(at uint16) bool { return c.chunk.isIrregular(c.block*blockSlots + int(at)) }

// want notes a row that had this owner before its sum was computed.
func (s *search) want(c *piece, at uint16, owner uint32, sum int32) {
	if owner == 0 || c.owners[at].Load() != owner || !s.tagged(owner) {
		return
	}
	s.wanted = append(s.wanted, wanted{c.chunk, owner, sum, uint16(c.block*blockSlots) + at})
	if least, _ := s.turned.similarities(sum); least >= s.top.least {
		s.top.certify(least, s.owners.Owner(owner))
	}
}

// wave is a number of exact rows that searches fetch together.
type wave struct {
	owners []uint32
	index  map[uint32]int // in owners
	takers []taker
	exact  []float32 // a row an owner
	got    []bool    // by owner
	dim    int
	wrong  atomic.Bool // a template had another dimension
}

// taker is a search that wants a row.
type taker struct {
	search *search
	row    wanted
	index  int // in owners
}

// fetch compares the wanted rows of searches of one matrix exactly, the best first, in waves that
// they share, until each search wants at most this many.
func (w *work) fetch(searches []*search, most int) {
	var running []*search
	for _, s := range searches {
		if s.err == nil && len(s.wanted) > most {
			s.state()
			s.wanted = slices.DeleteFunc(s.wanted, func(r wanted) bool { return r.sum < s.turned.row })
			slices.SortFunc(s.wanted, s.order)
			running = append(running, s)
		}
	}
	for size := waveLeast; len(running) > 0; size *= 2 {
		running = slices.DeleteFunc(running, func(s *search) bool { return s.ended() || len(s.wanted) <= most })
		w.wave.run(running, size)
	}
	for _, s := range searches {
		s.share()
	}
}

// order returns the order in which a search fetches rows.
func (s *search) order(a, b wanted) int {
	if s.top.query.After != nil {
		x, y := s.owners.Owner(a.owner), s.owners.Owner(b.owner)
		if c := bytes.Compare(x.Subject.UUID[:], y.Subject.UUID[:]); c != 0 {
			return c
		}
	}
	return cmp.Compare(b.sum, a.sum)
}

// run fetches and compares a wave. Each search has the first size rows in it that it wants, if
// there is room, and all others that it wants of those that are fetched anyway.
func (v *wave) run(searches []*search, size int) {
	if len(searches) == 0 {
		return
	}
	defer v.clear()
	share := max(1, min(size, waveMost/len(searches)))
	if v.index == nil {
		v.index = make(map[uint32]int)
	}
	for _, s := range searches {
		s.share()
		s.state()
		s.choose(v, share)
	}
	if len(searches) > 1 {
		for _, s := range searches {
			s.join(v)
		}
	}
	if len(v.owners) == 0 {
		return
	}
	err := v.fetch(searches)
	for i := range v.takers {
		t := &v.takers[i]
		switch {
		case err != nil:
			t.search.err = err
		case t.search.err == nil && v.got[t.index]:
			t.search.receive(&t.row, v.row(t.index))
		}
	}
}

// choose moves the first rows that the search still wants, as many as share says, into a wave.
func (s *search) choose(v *wave, share int) {
	n := 0
	for n < len(s.wanted) && share > 0 && len(v.owners) < waveMost {
		r := s.wanted[n]
		n++
		if s.excludes(&r) {
			continue
		}
		share--
		i, there := v.index[r.owner]
		if !there {
			i = len(v.owners)
			v.owners, v.index[r.owner] = append(v.owners, r.owner), i
		}
		v.takers = append(v.takers, taker{s, r, i})
	}
	s.wanted = slices.Delete(s.wanted, 0, n)
}

// join moves the rows of a wave that the search wants too.
func (s *search) join(v *wave) {
	s.wanted = slices.DeleteFunc(s.wanted, func(r wanted) bool {
		i, there := v.index[r.owner]
		if there && !s.excludes(&r) {
			v.takers = append(v.takers, taker{s, r, i})
		}
		return there
	})
}

// excludes reports whether a row can't get in any more.
func (s *search) excludes(r *wanted) bool {
	if r.sum < s.turned.row {
		return true
	}
	_, most := s.turned.similarities(r.sum)
	return !s.top.admits(most, s.owners.Owner(r.owner))
}

// fetch fetches the rows of the owners.
func (v *wave) fetch(searches []*search) error {
	s := searches[0]
	v.dim = s.shape.dim
	v.exact = slices.Grow(v.exact[:0], len(v.owners)*v.dim)[:len(v.owners)*v.dim]
	v.got = slices.Grow(v.got[:0], len(v.owners))[:len(v.owners)]
	clear(v.got)
	v.wrong.Store(false)
	ctx, cancel := together(searches)
	defer cancel()
	if err := s.matrix.source.Fetch(ctx, v.owners, v.take); err != nil {
		return fmt.Errorf("fetch %d exact rows: %w", len(v.owners), err)
	}
	if v.wrong.Load() {
		return fmt.Errorf("%w: got a template that has not %d numbers", ErrSource, v.dim)
	}
	return nil
}

// together returns a context that ends when those of all searches have ended.
func together(searches []*search) (context.Context, context.CancelFunc) {
	if len(searches) == 1 {
		return searches[0].ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(int64(len(searches)))
	stops := make([]func() bool, len(searches))
	for i, s := range searches {
		stops[i] = context.AfterFunc(s.ctx, func() {
			if left.Add(-1) == 0 {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

func (v *wave) row(i int) []float32 { return v.exact[i*v.dim:][:v.dim] }

// take copies a template that the source gives.
func (v *wave) take(i int, template []float32) {
	if len(template) != v.dim {
		v.wrong.Store(true)
		return
	}
	copy(v.row(i), template)
	v.got[i] = true
}

// clear zeroes the rows, and forgets the searches.
func (v *wave) clear() {
	clear(v.exact)
	clear(v.takers)
	clear(v.index)
	v.owners, v.takers, v.exact = v.owners[:0], v.takers[:0], v.exact[:0]
}

// receive compares a row exactly and offers it.
func (s *search) receive(r *wanted, template []float32) {
	if r.chunk.owners[r.at].Load() != r.owner {
		return // erased meanwhile
	}
	similarity := score.Dot(s.probe.nums[:s.shape.dim], template)
	if least, most := s.turned.similarities(r.sum); similarity < least || similarity > most {
		s.err = fmt.Errorf("%w: got the template of another row", ErrSource)
		return
	}
	if !(similarity < s.top.least) {
		s.top.keep(similarity, s.owners.Owner(r.owner))
	}
}
