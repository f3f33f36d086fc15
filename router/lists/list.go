package lists

import (
	"context"
	"slices"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
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
func (r *ListRequests) Subjects(ctx context.Context, access router.Access, p router.Page) (router.Listing, error) {
	g, _, err := r.cluster.Of(access)
	if err != nil {
		return router.Listing{}, err
	}
	return r.page(ctx, g, p)
}

func (r *ListRequests) page(ctx context.Context, g cluster.Gallery, p router.Page) (router.Listing, error) {
	after, err := r.from(ctx, g, &p)
	if err != nil {
		return router.Listing{}, err
	}
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (router.Listing, error) {
		if p.Start > 0 && len(g.ShardIDs) > 1 {
			return r.pageAt(ctx, g, p)
		}
		return r.pageAfter(ctx, g, p, after)
	})
}

// queryOf returns the query for a page of the list of shard s.
func queryOf(g cluster.Gallery, p router.Page, after *cursor, s id.Shard) listQuery {
	return listQuery{
		Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch,
		Start: p.Start, Length: p.Length, Order: p.Order, After: after.after(s),
	}
}

// pageAfter returns the page that follows the cursor, or the first one. Its cost does
// not depend on the place. p.Start may be set if the gallery lies on one shard.
func (r *ListRequests) pageAfter(ctx context.Context, g cluster.Gallery, p router.Page, after *cursor) (router.Listing, error) {
	need := p.Length + 1 // one more tells whether another page follows
	for piece := firstPiece(need, len(g.ShardIDs)); ; piece = need {
		queries := make([]listQuery, len(g.ShardIDs))
		for i, s := range g.ShardIDs {
			queries[i] = queryOf(g, router.Page{Start: p.Start, Length: piece, Order: p.Order}, after, s)
		}
		lists, total, err := r.pieces(ctx, g, queries)
		if err != nil {
			return router.Listing{}, err
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
func (r *ListRequests) pageAt(ctx context.Context, g cluster.Gallery, p router.Page) (router.Listing, error) {
	spans, err := calls.Scatter(ctx, r.cluster.Calls, shardSpan, g.ShardIDs, queryOf(g, router.Page{}, nil, 0))
	if err != nil {
		return router.Listing{}, err
	}
	var total int
	for _, s := range spans {
		total += s.Total
	}
	// A descending page is the reverse of an ascending one.
	start, end := p.Start, min(p.Start+p.Length, total)
	if p.Order == router.Descending {
		start, end = max(total-p.Start-p.Length, 0), total-p.Start
	}
	if start >= end {
		return router.Listing{Total: total}, nil
	}
	page, err := r.window(ctx, g, spans, start, end-start)
	if err != nil {
		return router.Listing{}, err
	}
	more := end < total
	if p.Order == router.Descending {
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
func (r *ListRequests) window(ctx context.Context, g cluster.Gallery, spans []spanAnswer, start, length int) ([]placed, error) {
	at, skipped, err := r.place(ctx, g, spans, start)
	if err != nil {
		return nil, err
	}
	need := start - skipped + length
	for piece := firstPiece(need, len(g.ShardIDs)); ; piece = need {
		queries := make([]listQuery, len(g.ShardIDs))
		for i, s := range g.ShardIDs {
			queries[i] = queryOf(g, router.Page{Start: at[i], Length: piece}, nil, s)
		}
		lists, _, err := r.pieces(ctx, g, queries)
		if err != nil {
			return nil, err
		}
		if page, whole := window(lists, piece, start-skipped, length, router.Ascending); whole || piece == need {
			return page, nil
		}
	}
}

// pieces returns the answers of the shards to their queries, and the number of all
// entries.
func (r *ListRequests) pieces(ctx context.Context, g cluster.Gallery, queries []listQuery) (lists []shardList, total int, err error) {
	answers, err := calls.ScatterBy(ctx, len(queries), func(ctx context.Context, i int) (listAnswer, error) {
		return calls.CallAny(ctx, r.cluster.Calls, shardEntries, g.ShardIDs[i], queries[i])
	})
	if err != nil {
		return nil, 0, err
	}
	lists = make([]shardList, len(answers))
	for i, a := range answers {
		lists[i] = shardList{g.ShardIDs[i], a, g.Kept()}
		total += a.Total
	}
	return lists, total, nil
}

// place returns, for each shard, a number of entries that lie before index start of
// the merged list. skipped is their sum. It is at most start, and at least start -
// placeSlack unless many entries have the same time.
func (r *ListRequests) place(ctx context.Context, g cluster.Gallery, spans []spanAnswer, start int) (at []int, skipped int, err error) {
	at = make([]int, len(g.ShardIDs))
	low, high := spans[0].First, spans[0].Last
	for _, s := range spans {
		if s.Total > 0 {
			low, high = min(low, s.First), max(high, s.Last)
		}
	}
	for round := 0; round < placeRounds && start-skipped > placeSlack && low < high; round++ {
		times := probesBetween(low, high)
		counts, err := calls.Scatter(ctx, r.cluster.Calls, shardBefore, g.ShardIDs, beforeQuery{Gallery: g.ID, Times: times})
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
func (r *ListRequests) listing(g cluster.Gallery, page []placed, total int, next string) (router.Listing, error) {
	out := router.Listing{Entries: make([]router.Entry, len(page)), Total: total, Next: next}
	for i, e := range page {
		out.Entries[i] = e.Entry
		if len(e.noted.Note) == 0 {
			continue
		}
		key, err := r.cluster.DataKey(g.Gallery)
		if err == nil {
			out.Entries[i].Note, err = g.OpenNote(key, e.Subject, e.noted)
		}
		if err != nil {
			return router.Listing{}, err
		}
	}
	return out, nil
}

var shardEntries = cluster.ShardReadAny("shard.entries", func(_ context.Context, _ *cluster.Cluster, s *shard.Shard, q listQuery) (listAnswer, error) {
	return q.read(s)
})

// spanAnswer contains the number of a shard's entries of a gallery, and the times
// of the first and the last one in milliseconds.
type spanAnswer struct {
	Total int   `cbor:"1,keyasint"`
	First int64 `cbor:"2,keyasint"`
	Last  int64 `cbor:"3,keyasint"`
}

var shardSpan = cluster.ShardRead("shard.span", func(s *shard.Shard, q listQuery) (spanAnswer, error) {
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
var shardBefore = calls.NewMethod("shard.before", func(_ context.Context, r *cluster.Cluster, group id.Shard, q beforeQuery) ([]int, error) {
	g, s, err := r.LocalReplica(group)
	if err != nil {
		return nil, err
	}
	if !g.IsLeader() {
		return nil, &raftfsm.NotLeaderError{}
	}
	if len(q.Times) > placeProbes {
		return nil, router.Errorf(router.InvalidRequest, "", "at most %d times at once", placeProbes)
	}
	counts := make([]int, 0, len(q.Times))
	for _, t := range q.Times {
		counts = append(counts, s.CountBefore(q.Gallery, t))
	}
	return counts, nil
})
