package routing

import (
	"context"

	"facet/internal/id"
	"facet/router/calls"
	"facet/shard"
)

// eventsQuery asks for a subject's active events.
type eventsQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
}

// eventsOf returns the active events of a subject, by the leader of its shard.
func eventsOf(ctx context.Context, r *cluster, g enrolment, subject id.Subject) ([]shard.Active, error) {
	return calls.CallLeader(ctx, r.calls, shardEvents, subject.Shard(), eventsQuery{g.ID, g.Generation, subject})
}

var shardEvents = shardRead("shard.events", func(_ context.Context, _ *cluster, s *shard.Shard, q eventsQuery) ([]shard.Active, error) {
	return s.Events(q.Gallery, q.Generation, q.Subject)
})
