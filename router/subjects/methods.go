package subjects

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
)

var shardGrant = cluster.ShardCommand("shard.grant", shardfsm.GrantOp, nil)

// RegisterAnswer is a shard's answer to a registration. Granted is the number of
// slots that meta had granted to the shard.
type RegisterAnswer struct {
	shardfsm.RegisterAnswer
	Granted uint32 `cbor:"100,keyasint,omitempty"`
}

var shardRegister = calls.NewMethod("shard.register", func(ctx context.Context, r *SubjectRequests, group id.Shard, c shardfsm.Register) (RegisterAnswer, error) {
	c.Time = cluster.OnTime(r.cluster.Clock, c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.RegisterOp, c)
})

// ShardAdd adds an event to a subject.
var ShardAdd = calls.NewMethod("shard.add", func(ctx context.Context, r *SubjectRequests, group id.Shard, c shardfsm.AddEvent) (RegisterAnswer, error) {
	c.Time = cluster.OnTime(r.cluster.Clock, c.Time)
	return enrol(ctx, r, group, c.Gallery, shardfsm.AddEventOp, c)
})

// enrol proposes a write that needs a slot.
func enrol[C any](ctx context.Context, r *SubjectRequests, group id.Shard, gallery id.Gallery, op command.Op[C, shardfsm.RegisterAnswer], c C) (RegisterAnswer, error) {
	g, s, err := r.cluster.LocalReplica(group)
	if err != nil {
		return RegisterAnswer{}, err
	}
	if r.memory != nil && r.memory.Full() {
		return RegisterAnswer{}, &router.Error{Kind: router.Insufficient, Message: "the service has no memory or disk for more events", RetryAfter: admission.MemoryRetry}
	}
	// Read this before the proposal. A grant may come in between, and the next request
	// for slots must then ask for more than that grant, never for less.
	granted := s.Usage(gallery).Granted
	a, err := cluster.Propose(ctx, g, op, c)
	return RegisterAnswer{a, granted}, err
}

// RemovedAnswer is a shard's answer to a removal. Applied is an index of its log at or after the removal's entry, and External is the name of the external id that the
// subject had before. External is a hint: a lost or late one leaves a claim for ScrubClaims.
type RemovedAnswer struct {
	shardfsm.UnregisterAnswer
	Applied  uint64             `cbor:"100,keyasint,omitempty"`
	External shard.ExternalName `cbor:"101,keyasint,omitzero"`
}

var shardUnregister = calls.NewMethod("shard.unregister", func(ctx context.Context, r *cluster.Cluster, group id.Shard, c shardfsm.Unregister) (RemovedAnswer, error) {
	c.Time = cluster.OnTime(r.Clock, c.Time)
	return remove(ctx, r, group, lookup.EventsQuery{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject}, shardfsm.UnregisterOp, c)
})

var shardRemove = calls.NewMethod("shard.remove", func(ctx context.Context, r *cluster.Cluster, group id.Shard, c shardfsm.RemoveEvent) (RemovedAnswer, error) {
	c.Time = cluster.OnTime(r.Clock, c.Time)
	return remove(ctx, r, group, lookup.EventsQuery{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject}, shardfsm.RemoveEventOp, c)
})

// remove proposes a write that removes a subject or one of its events.
func remove[C any](ctx context.Context, r *cluster.Cluster, group id.Shard, of lookup.EventsQuery, op command.Op[C, shardfsm.UnregisterAnswer], c C) (RemovedAnswer, error) {
	g, s, err := r.LocalReplica(group)
	if err != nil {
		return RemovedAnswer{}, err
	}
	var name shard.ExternalName
	noted, err := s.NotesOf(of.Gallery, of.Generation, []id.Subject{of.Subject})
	if err == nil && len(noted) == 1 {
		name = shard.ExternalOf(noted[0].Note)
	}
	a, err := cluster.Propose(ctx, g, op, c)
	return RemovedAnswer{a, g.Applied(), name}, err
}

// knowsQuery asks for an enrolment by the subject and event that it creates on a
// shard.
type knowsQuery struct {
	Made      lookup.EventsQuery `cbor:"1,keyasint"`
	Event     id.Event           `cbor:"2,keyasint"`
	Operation id.Operation       `cbor:"3,keyasint"`
	// Epoch is the gallery's epoch on the calling node, which would enrol on
	// another shard.
	Epoch uint32 `cbor:"4,keyasint"`
}

// shardKnows reports whether a shard remembers an enrolment or still has its
// subject. If not, the shard learns the epoch. It then refuses a first try that is
// still under way with an earlier epoch.
var shardKnows = calls.NewMethod("shard.knows", func(ctx context.Context, r *cluster.Cluster, group id.Shard, q knowsQuery) (bool, error) {
	m, err := cluster.WidenedMachine(ctx, r, group, shardfsm.Widen{Gallery: q.Made.Gallery, Generation: q.Made.Generation, Epoch: q.Epoch})
	if err != nil {
		return false, err
	}
	s := m.Shard()
	if m.Remembers(q.Operation) || s.IsPending(q.Made.Gallery, q.Event) {
		return true, nil
	}
	events, err := s.Events(q.Made.Gallery, q.Made.Generation, q.Made.Subject)
	return len(events) > 0, cluster.Outdated(err)
})
