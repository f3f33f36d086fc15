package router

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/router/calls"
	"facet/shard"
)

// ExpiringPage asks for a window of the events that expire before a time.
type ExpiringPage struct {
	Before time.Time
	Length int    // 1 to ListLengthMax
	After  string // the Next of an earlier page, or empty
}

// Expiring returns a page of the gallery's events that expire before a time, soonest
// first. Total counts all of them. It changes nothing.
func (r *listRequests) Expiring(ctx context.Context, access Access, p ExpiringPage) (Listing, error) {
	g, _, err := r.enrolment(access)
	if err == nil {
		err = r.sync.Join(ctx) // for the retention
	}
	if err != nil {
		return Listing{}, err
	}
	after, err := r.afterExpiry(g, p.After)
	if err != nil {
		return Listing{}, err
	}
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (Listing, error) {
		if now, ok := r.gallery(g.ID); ok {
			g.RetentionDays = now.RetentionDays
		}
		queries := make([]expiringQuery, len(g.shards))
		for i, s := range g.shards {
			queries[i] = expiringQuery{
				Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Kept: g.kept(),
				Before: p.Before.UnixMilli(), After: after.after(s), Length: p.Length + 1,
			}
		}
		answers, err := calls.ScatterEach(ctx, r.calls, shardExpiring, g.shards, queries)
		if err != nil {
			return Listing{}, err
		}
		return r.expiringListing(g, answers, p.Length)
	})
}

// expiringListing merges the answers of the shards.
func (r *listRequests) expiringListing(g enrolment, answers []listAnswer, length int) (Listing, error) {
	total, next := 0, ""
	lists := make([]shardList, len(answers))
	for i, a := range answers {
		total += a.Total
		lists[i] = shardList{g.shards[i], a, g.kept()}
	}
	page := soonest(lists)
	if len(page) > length {
		page = page[:length]
		last := page[length-1]
		cluster, _ := r.groups.Meta().Cluster()
		c := cursor{expiryOrder, last.shard, shard.Position{Time: last.Expires.UnixMilli(), Sequence: last.sequence}}
		next = c.text(cluster.ID, g.Gallery)
	}
	return r.listing(g, page, total, next)
}

// afterExpiry reads the cursor of a page of what expires. Without one it is nil.
func (r *listRequests) afterExpiry(g enrolment, text string) (*cursor, error) {
	if text == "" {
		return nil, nil
	}
	cluster, _ := r.groups.Meta().Cluster()
	c, ok := readCursor(cluster.ID, g.Gallery, text)
	if !ok || c.order != expiryOrder {
		return nil, Errorf(InvalidRequest, ReasonUnknownCursor, "the cursor in after is not one of what expires in this gallery; send the next of an earlier page as it came")
	}
	return c, nil
}

// expiringQuery asks a shard for events that expire before a time, after a position.
type expiringQuery struct {
	Gallery    id.Gallery      `cbor:"1,keyasint"`
	Generation uint32          `cbor:"2,keyasint"`
	Epoch      uint32          `cbor:"3,keyasint"`
	Kept       int64           `cbor:"4,keyasint"` // the gallery's retention in milliseconds
	Before     int64           `cbor:"5,keyasint"`
	After      *shard.Position `cbor:"6,keyasint,omitempty"`
	Length     int             `cbor:"7,keyasint"`
}

var shardExpiring = shardRead("shard.expiring", func(_ context.Context, _ *Router, s *shard.Shard, q expiringQuery) (listAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return listAnswer{}, err
	}
	var after shard.Position
	if q.After != nil {
		after = *q.After
	}
	return answerOf(s, q.Gallery, q.Generation, s.ListExpiring(q.Gallery, q.Kept, q.Before, after, min(q.Length, ListLengthMax+1)))
})
