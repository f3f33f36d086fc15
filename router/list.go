package router

import (
	"context"
	"slices"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router/calls"
	"facet/shard"
)

// A page after a cursor is merged from the entries that follow the cursor's place on
// each shard (cursor.go). A page may start at an index instead. On one shard it is a
// part of that shard's list. The lists of several shards are merged by time, and the
// start of the page must be found without reading the entries before it. The router
// asks all shards how many of their entries lie before each of placeProbes times.
// Each round narrows the interval of times in which the page starts:
//
//	shard 1  ····|·····     T is the last time with at most start entries before it.
//	shard 2  ··|·······     A short piece of each list from T on holds the page.
//	shard 3  ······|···
//	             T
const (
	// placeProbes is the number of times that one round asks about.
	placeProbes = 64
	// placeSlack is the most entries between the place that was found and the page.
	// They are read and thrown away.
	placeSlack = 512
	// placeRounds is the most rounds. 64⁷ ms are longer than any history.
	placeRounds = 7
)

// Subjects returns a page of the gallery's list in order of the last update. It has
// one entry for each event, deleted ones included.
func (r *listRequests) Subjects(ctx context.Context, access Access, p Page) (Listing, error) {
	g, _, err := r.enrolment(access)
	if err != nil {
		return Listing{}, err
	}
	return r.page(ctx, g, p)
}

func (r *listRequests) page(ctx context.Context, g enrolment, p Page) (Listing, error) {
	after, err := r.from(ctx, g, &p)
	if err != nil {
		return Listing{}, err
	}
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (Listing, error) {
		if p.Start > 0 && len(g.shards) > 1 {
			return r.pageAt(ctx, g, p)
		}
		return r.pageAfter(ctx, g, p, after)
	})
}

// list returns the query for a page of the list of shard s.
func (g enrolment) list(p Page, after *cursor, s id.Shard) listQuery {
	return listQuery{
		Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch,
		Start: p.Start, Length: p.Length, Order: p.Order, After: after.after(s),
	}
}

// pageAfter returns the page that follows the cursor, or the first one. Its cost does
// not depend on the place. p.Start may be set if the gallery lies on one shard.
func (r *listRequests) pageAfter(ctx context.Context, g enrolment, p Page, after *cursor) (Listing, error) {
	need := p.Length + 1 // one more tells whether another page follows
	for piece := firstPiece(need, len(g.shards)); ; piece = need {
		queries := make([]listQuery, len(g.shards))
		for i, s := range g.shards {
			queries[i] = g.list(Page{Start: p.Start, Length: piece, Order: p.Order}, after, s)
		}
		lists, total, err := r.pieces(ctx, g, queries)
		if err != nil {
			return Listing{}, err
		}
		page, whole := window(lists, piece, 0, need, p.Order)
		if !whole && piece < need {
			continue
		}
		if len(page) < need {
			return r.listing(g, page, total, "")
		}
		page = page[:p.Length]
		return r.listing(g, page, total, r.next(g, page[len(page)-1], p.Order))
	}
}

// firstPiece returns the number of entries to ask each shard for. One shard may hold
// the whole page, but mostly each holds its share. Twice the share is nearly always
// enough, and window detects when it was not.
func firstPiece(need, shards int) int { return min(need, 2*need/shards+placeSlack/8) }

// pageAt returns the page that starts at an index of the merged list.
func (r *listRequests) pageAt(ctx context.Context, g enrolment, p Page) (Listing, error) {
	spans, err := calls.Scatter(ctx, r.calls, shardSpan, g.shards, g.list(Page{}, nil, 0))
	if err != nil {
		return Listing{}, err
	}
	var total int
	for _, s := range spans {
		total += s.Total
	}
	// A descending page is the reverse of an ascending one.
	start, end := p.Start, min(p.Start+p.Length, total)
	if p.Order == Descending {
		start, end = max(total-p.Start-p.Length, 0), total-p.Start
	}
	if start >= end {
		return Listing{Total: total}, nil
	}
	page, err := r.window(ctx, g, spans, start, end-start)
	if err != nil {
		return Listing{}, err
	}
	more := end < total
	if p.Order == Descending {
		more = start > 0
		slices.Reverse(page)
	}
	next := ""
	if more && len(page) > 0 {
		next = r.next(g, page[len(page)-1], p.Order)
	}
	return r.listing(g, page, total, next)
}

// window returns length entries of the merged list, from index start on.
func (r *listRequests) window(ctx context.Context, g enrolment, spans []spanAnswer, start, length int) ([]placed, error) {
	at, skipped, err := r.place(ctx, g, spans, start)
	if err != nil {
		return nil, err
	}
	need := start - skipped + length
	for piece := firstPiece(need, len(g.shards)); ; piece = need {
		queries := make([]listQuery, len(g.shards))
		for i, s := range g.shards {
			queries[i] = g.list(Page{Start: at[i], Length: piece}, nil, s)
		}
		lists, _, err := r.pieces(ctx, g, queries)
		if err != nil {
			return nil, err
		}
		if page, whole := window(lists, piece, start-skipped, length, Ascending); whole || piece == need {
			return page, nil
		}
	}
}

// pieces returns the answers of the shards to their queries, and the number of all
// entries.
func (r *listRequests) pieces(ctx context.Context, g enrolment, queries []listQuery) (lists []shardList, total int, err error) {
	answers, err := calls.ScatterBy(ctx, len(queries), func(ctx context.Context, i int) (listAnswer, error) {
		return calls.CallAny(ctx, r.calls, shardEntries, g.shards[i], queries[i])
	})
	if err != nil {
		return nil, 0, err
	}
	lists = make([]shardList, len(answers))
	for i, a := range answers {
		lists[i] = shardList{g.shards[i], a, g.kept()}
		total += a.Total
	}
	return lists, total, nil
}

// place returns, for each shard, a number of entries that lie before index start of
// the merged list. skipped is their sum. It is at most start, and at least start -
// placeSlack unless many entries have the same time.
func (r *listRequests) place(ctx context.Context, g enrolment, spans []spanAnswer, start int) (at []int, skipped int, err error) {
	at = make([]int, len(g.shards))
	low, high := spans[0].First, spans[0].Last
	for _, s := range spans {
		if s.Total > 0 {
			low, high = min(low, s.First), max(high, s.Last)
		}
	}
	for round := 0; round < placeRounds && start-skipped > placeSlack && low < high; round++ {
		times := probesBetween(low, high)
		counts, err := calls.Scatter(ctx, r.calls, shardBefore, g.shards, beforeQuery{Gallery: g.ID, Times: times})
		if err != nil {
			return nil, 0, err
		}
		next := high
		for i, t := range times {
			sum := 0
			for _, c := range counts {
				sum += c[i]
			}
			if sum > start {
				next = t - 1
				break
			}
			low, skipped = t, sum
			for s, c := range counts {
				at[s] = c[i]
			}
		}
		high = next
	}
	return at, skipped, nil
}

// probesBetween returns at most placeProbes times in (low, high], in rising order
// up to high.
func probesBetween(low, high int64) []int64 {
	n := min(placeProbes, high-low)
	times := make([]int64, 0, n)
	for i := int64(1); i <= n; i++ {
		times = append(times, low+(high-low)*i/n)
	}
	return times
}

// listing returns a page with the notes of its subjects.
func (r *listRequests) listing(g enrolment, page []placed, total int, next string) (Listing, error) {
	out := Listing{Entries: make([]Entry, len(page)), Total: total, Next: next}
	for i, e := range page {
		out.Entries[i] = e.Entry
		if len(e.noted.Note) == 0 {
			continue
		}
		key, err := r.dataKey(g.Gallery)
		if err == nil {
			out.Entries[i].Note, err = openNote(g, key, e.Subject, e.noted)
		}
		if err != nil {
			return Listing{}, err
		}
	}
	return out, nil
}

// listQuery asks one shard for a page of its list of a gallery.
type listQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Start      int        `cbor:"3,keyasint"`
	Length     int        `cbor:"4,keyasint"`
	Order      Order      `cbor:"5,keyasint"`
	Epoch      uint32     `cbor:"6,keyasint"`
	// After, if set, is where the page starts instead of Start.
	After *shard.Position `cbor:"7,keyasint,omitempty"`
}

// listAnswer is a page of one shard's list.
type listAnswer struct {
	Entries   []shard.Entry `cbor:"1,keyasint"`
	Total     int           `cbor:"2,keyasint"`
	Sequences []uint64      `cbor:"3,keyasint,omitempty"`
	// Noted has the notes of the active entries' subjects. It is left out if none has one.
	Noted   []shard.Active `cbor:"4,keyasint,omitempty"`
	Expires []int64        `cbor:"5,keyasint,omitempty"`
}

var shardEntries = shardReadAny("shard.entries", func(_ context.Context, _ *Router, s *shard.Shard, q listQuery) (listAnswer, error) {
	return q.read(s)
})

func (q listQuery) read(s *shard.Shard) (listAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return listAnswer{}, err
	}
	var p shard.Page
	if q.After != nil {
		p = s.ListEventsAfter(q.Gallery, *q.After, q.Length, shard.Order(q.Order))
	} else {
		p = s.ListEvents(q.Gallery, q.Start, q.Length, shard.Order(q.Order))
	}
	return answerOf(s, q.Gallery, q.Generation, p)
}

// answerOf returns a page with the notes of its subjects.
func answerOf(s *shard.Shard, g id.Gallery, generation uint32, p shard.Page) (listAnswer, error) {
	a := listAnswer{Entries: p.Entries, Total: p.Total, Sequences: p.Sequences, Expires: p.Expires}
	subjects := make([]id.Subject, len(p.Entries))
	for i, e := range p.Entries {
		if !e.Deleted {
			subjects[i] = e.Subject
		}
	}
	var err error
	a.Noted, err = s.NotesOf(g, generation, subjects)
	return a, err
}

// spanAnswer contains the number of a shard's entries of a gallery, and the times
// of the first and the last one in milliseconds.
type spanAnswer struct {
	Total int   `cbor:"1,keyasint"`
	First int64 `cbor:"2,keyasint"`
	Last  int64 `cbor:"3,keyasint"`
}

var shardSpan = shardRead("shard.span", func(_ context.Context, _ *Router, s *shard.Shard, q listQuery) (spanAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return spanAnswer{}, err
	}
	first := s.ListEvents(q.Gallery, 0, 1, shard.Ascending)
	last := s.ListEvents(q.Gallery, 0, 1, shard.Descending)
	if len(first.Entries) == 0 || len(last.Entries) == 0 {
		return spanAnswer{}, nil
	}
	return spanAnswer{Total: first.Total, First: first.Entries[0].Time, Last: last.Entries[0].Time}, nil
})

// beforeQuery asks how many of a gallery's entries lie before each of the times.
type beforeQuery struct {
	Gallery id.Gallery `cbor:"1,keyasint"`
	Times   []int64    `cbor:"2,keyasint"`
}

// shardBefore reads the leader's state without confirming its leadership. Its
// counts only narrow a search; shardEntries reads the page itself.
var shardBefore = method[beforeQuery, []int]{Name: "shard.before", Run: func(_ context.Context, r *Router, group id.Shard, q beforeQuery) ([]int, error) {
	g, s, err := r.localReplica(group)
	if err != nil {
		return nil, err
	}
	if !g.IsLeader() {
		return nil, &raftfsm.NotLeaderError{}
	}
	if len(q.Times) > placeProbes {
		return nil, Errorf(InvalidRequest, "", "at most %d times at once", placeProbes)
	}
	counts := make([]int, 0, len(q.Times))
	for _, t := range q.Times {
		counts = append(counts, s.CountBefore(q.Gallery, t))
	}
	return counts, nil
}}

// shardList is the piece of a window that one shard holds.
type shardList struct {
	shard id.Shard
	listAnswer
	kept int64 // the gallery's retention in milliseconds, or 0
}
