package lists

import (
	"context"

	"facet/internal/id"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
)

// Expiring returns a page of the gallery's events that expire before a time, soonest
// first. Total counts all of them. It changes nothing.
func (r *ListRequests) Expiring(ctx context.Context, access router.Access, p router.ExpiringPage) (router.Listing, error) {
	g, _, err := r.cluster.Of(access)
	if err == nil {
		err = r.cluster.SyncMeta(ctx) // for the retention
	}
	if err != nil {
		return router.Listing{}, err
	}
	after, err := r.afterExpiry(g, p.After)
	if err != nil {
		return router.Listing{}, err
	}
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (router.Listing, error) {
		if now, ok := r.cluster.Find(g.ID); ok {
			g.RetentionDays = now.RetentionDays
		}
		queries := make([]expiringQuery, len(g.ShardIDs))
		for i, s := range g.ShardIDs {
			queries[i] = expiringQuery{
				Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Kept: g.Kept(),
				Before: p.Before.UnixMilli(), After: after.after(s), Length: p.Length + 1,
			}
		}
		answers, err := calls.ScatterEach(ctx, r.cluster.Calls, shardExpiring, g.ShardIDs, queries)
		if err != nil {
			return router.Listing{}, err
		}
		return r.expiringListing(g, answers, p.Length)
	})
}

// expiringListing merges the answers of the shards.
func (r *ListRequests) expiringListing(g cluster.Gallery, answers []listAnswer, length int) (router.Listing, error) {
	total, next := 0, ""
	lists := make([]shardList, len(answers))
	for i, a := range answers {
		total += a.Total
		lists[i] = shardList{g.ShardIDs[i], a, g.Kept()}
	}
	page := soonest(lists)
	if len(page) > length {
		page = page[:length]
		last := page[length-1]
		record, _ := r.cluster.Groups.Meta().Cluster()
		c := cursor{expiryOrder, last.shard, shard.Position{Time: last.Expires.UnixMilli(), Sequence: last.sequence}}
		next = c.text(record.ID, g.Gallery)
	}
	return r.listing(g, page, total, next)
}

// afterExpiry reads the cursor of a page of what expires. Without one it is nil.
func (r *ListRequests) afterExpiry(g cluster.Gallery, text string) (*cursor, error) {
	if text == "" {
		return nil, nil
	}
	record, _ := r.cluster.Groups.Meta().Cluster()
	c, ok := readCursor(record.ID, g.Gallery, text)
	if !ok || c.order != expiryOrder {
		return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownCursor, "the cursor in after is not one of what expires in this gallery; send the next of an earlier page as it came")
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

var shardExpiring = cluster.ShardRead("shard.expiring", func(s *shard.Shard, q expiringQuery) (listAnswer, error) {
	if err := s.CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return listAnswer{}, err
	}
	var after shard.Position
	if q.After != nil {
		after = *q.After
	}
	return answerOf(s, q.Gallery, q.Generation, s.ListExpiring(q.Gallery, q.Kept, q.Before, after, min(q.Length, router.ListLengthMax+1)))
})
