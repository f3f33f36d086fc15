package router

import (
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router/calls"
	"facet/shard"
)

// A page of a gallery on one shard is a part of that shard's list. The lists of
// several shards are merged by time, and the start of the page must be found without
// reading the entries before it. The router asks all shards how many of their entries
// lie before each of placeProbes times. Each round narrows the interval of times in
// which the page starts:
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
func (r *subjectRequests) Subjects(ctx context.Context, access Access, p Page) (Listing, error) {
	g, _, err := r.enrolment(access)
	if err != nil {
		return Listing{}, err
	}
	return r.page(ctx, g, p)
}

func (r *subjectRequests) page(ctx context.Context, g enrolment, p Page) (Listing, error) {
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (Listing, error) {
		if len(g.shards) == 1 {
			a, err := calls.CallLeader(ctx, r.calls, shardEntries, g.shards[0], g.list(p))
			return Listing{Entries: entriesOf(a.Entries), Total: a.Total}, err
		}
		return r.mergedPage(ctx, g, p)
	})
}

// list returns the query for a page of one shard's list.
func (g enrolment) list(p Page) listQuery {
	return listQuery{
		Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch,
		Start: p.Start, Length: p.Length, Order: p.Order,
	}
}

func (r *subjectRequests) mergedPage(ctx context.Context, g enrolment, p Page) (Listing, error) {
	spans, err := calls.Scatter(ctx, r.calls, shardSpan, g.shards, g.list(Page{}))
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
	entries, err := r.window(ctx, g, spans, start, end-start)
	if p.Order == Descending {
		slices.Reverse(entries)
	}
	return Listing{Entries: entries, Total: total}, err
}

// window returns length entries of the merged list, from index start on.
func (r *subjectRequests) window(ctx context.Context, g enrolment, spans []spanAnswer, start, length int) ([]Entry, error) {
	at, skipped, err := r.place(ctx, g, spans, start)
	if err != nil {
		return nil, err
	}
	// One shard may hold the whole page, but mostly each holds its share. Twice the
	// share is nearly always enough, and window detects when it was not.
	need := start - skipped + length
	for piece := min(need, 2*need/len(g.shards)+placeSlack/8); ; piece = need {
		lists, err := r.pieces(ctx, g, at, piece)
		if err != nil {
			return nil, err
		}
		if entries, whole := window(lists, piece, start-skipped, length); whole || piece == need {
			return entries, nil
		}
	}
}

// pieces returns at most piece entries of each shard's list. For shard i they start
// at index at[i].
func (r *subjectRequests) pieces(ctx context.Context, g enrolment, at []int, piece int) ([]shardList, error) {
	queries := make([]listQuery, len(g.shards))
	for i := range g.shards {
		queries[i] = g.list(Page{Start: at[i], Length: piece})
	}
	answers, err := calls.ScatterEach(ctx, r.calls, shardEntries, g.shards, queries)
	if err != nil {
		return nil, err
	}
	lists := make([]shardList, len(answers))
	for i, a := range answers {
		lists[i] = shardList{g.shards[i], entriesOf(a.Entries)}
	}
	return lists, nil
}

// place returns, for each shard, a number of entries that lie before index start of
// the merged list. skipped is their sum. It is at most start, and at least start -
// placeSlack unless many entries have the same time.
func (r *subjectRequests) place(ctx context.Context, g enrolment, spans []spanAnswer, start int) (at []int, skipped int, err error) {
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

func entriesOf(in []shard.Entry) []Entry {
	out := make([]Entry, 0, len(in))
	for _, e := range in {
		out = append(out, Entry{Subject: e.Subject, Event: e.Event, Deleted: e.Deleted, Updated: time.UnixMilli(e.Time).UTC()})
	}
	return out
}

// listQuery asks one shard for a page of its list of a gallery.
type listQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Start      int        `cbor:"3,keyasint"`
	Length     int        `cbor:"4,keyasint"`
	Order      Order      `cbor:"5,keyasint"`
	Epoch      uint32     `cbor:"6,keyasint"`
}

type listAnswer struct {
	Entries []shard.Entry `cbor:"1,keyasint"`
	Total   int           `cbor:"2,keyasint"`
}

var shardEntries = shardRead("shard.entries", func(_ context.Context, _ *Router, s *shard.Shard, q listQuery) (listAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return listAnswer{}, err
	}
	entries, total := s.Listing().List(q.Gallery, q.Start, q.Length, shard.Order(q.Order))
	return listAnswer{entries, total}, nil
})

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
	first, total := s.Listing().List(q.Gallery, 0, 1, shard.Ascending)
	last, _ := s.Listing().List(q.Gallery, 0, 1, shard.Descending)
	if len(first) == 0 || len(last) == 0 {
		return spanAnswer{}, nil
	}
	return spanAnswer{Total: total, First: first[0].Time, Last: last[0].Time}, nil
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
		counts = append(counts, s.Listing().Before(q.Gallery, t))
	}
	return counts, nil
}}

// shardList is the piece of a window that one shard holds.
type shardList struct {
	shard   id.Shard
	entries []Entry
}
