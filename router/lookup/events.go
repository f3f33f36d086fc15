// Package lookup asks the shards of subjects for their present state: events, notes and merges.
package lookup

import (
	"context"

	"facet/internal/id"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
)

// EventsQuery asks for a subject's active events.
type EventsQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
}

// Events returns the active events of a subject, by the leader of its shard.
func Events(ctx context.Context, r *cluster.Cluster, g cluster.Gallery, subject id.Subject) ([]shard.Active, error) {
	return calls.CallLeader(ctx, r.Calls, shardEvents, subject.Shard(), EventsQuery{g.ID, g.Generation, subject})
}

var shardEvents = cluster.ShardRead("shard.events", func(s *shard.Shard, q EventsQuery) ([]shard.Active, error) {
	return s.Events(q.Gallery, q.Generation, q.Subject)
})
