package router

import (
	"context"
	"time"

	"facet/internal/id"
)

// Subjects gives a page of the gallery's list: one entry an event, deleted ones
// included, in order of their last update.
func (r *Router) Subjects(ctx context.Context, access Access, p Page) (Listing, error) {
	g, _, err := r.enrolment(access)
	if err != nil {
		return Listing{}, err
	}
	// One shard gives the window itself; of several, each gives its first entries
	// up to the window's end, because any of them may hold the whole window.
	q := listQuery{Gallery: g.ID, Start: p.Start, Length: p.Length, Order: p.Order}
	rest := Page{Start: 0, Length: p.Length, Order: p.Order}
	if len(g.shards) > 1 {
		q.Start, q.Length = 0, p.Start+p.Length
		rest.Start = p.Start
	}
	answers, err := scatter(ctx, r, shardEntries, g.shards, q)
	if err != nil {
		return Listing{}, err
	}
	var l Listing
	lists := make([]shardList, 0, len(answers))
	for i, a := range answers {
		l.Total += a.Total
		list := shardList{shard: g.shards[i]}
		for _, e := range a.Entries {
			list.entries = append(list.entries, Entry{
				Subject: e.Subject, Event: e.Event, Deleted: e.Deleted, Updated: time.UnixMilli(e.Time).UTC(),
			})
		}
		lists = append(lists, list)
	}
	l.Entries = window(lists, rest)
	return l, nil
}

// shardList is what one shard holds of a window.
type shardList struct {
	shard   id.Shard
	entries []Entry
}
