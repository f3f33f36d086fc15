package lookup

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
)

// SubjectQuery asks for a subject, and whether its shard remembers an operation.
type SubjectQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Subject    id.Subject   `cbor:"3,keyasint"`
	Operation  id.Operation `cbor:"4,keyasint"`
	// Heir asks for the face of the subject's second event.
	Heir bool `cbor:"5,keyasint,omitempty"`
}

// SubjectAnswer is the state of a subject.
type SubjectAnswer struct {
	// Known reports whether the shard remembers the operation.
	Known bool `cbor:"1,keyasint,omitempty"`
	// Bars is the shard's count of bars (claim.Book.Bars).
	Bars   uint64         `cbor:"2,keyasint,omitempty"`
	Events []shard.Active `cbor:"3,keyasint,omitempty"`
	// Entries are the lines of the active events in the list.
	Entries []shard.Entry `cbor:"4,keyasint,omitempty"`
	// Heir is the sealed face of the second event.
	Heir []byte `cbor:"5,keyasint,omitempty"`
}

// Name returns the name of the subject's external id, or the zero name.
func (a SubjectAnswer) Name() shard.ExternalName {
	if len(a.Events) == 0 {
		return shard.ExternalName{}
	}
	return shard.ExternalOf(a.Events[0].Note)
}

// Subject returns the state of a subject, by the leader of its shard.
func Subject(ctx context.Context, r *cluster.Cluster, g cluster.Gallery, q SubjectQuery) (SubjectAnswer, error) {
	q.Gallery, q.Generation = g.ID, g.Generation
	return calls.CallLeader(ctx, r.Calls, shardSubject, q.Subject.Shard(), q)
}

var shardSubject = cluster.MachineRead("shard.subject", func(m *shardfsm.Machine, q SubjectQuery) (a SubjectAnswer, err error) {
	s := m.Shard()
	// Read the bars before the events: a bar that comes in between counts as later.
	a = SubjectAnswer{Bars: m.Claims().Bars(), Known: m.Remembers(q.Operation)}
	if a.Events, err = s.Events(q.Gallery, q.Generation, q.Subject); err != nil {
		return a, err
	}
	a.Entries = s.ListSubject(q.Gallery, q.Subject)
	if q.Heir && len(a.Events) > 1 {
		heir := a.Events[1]
		a.Heir, _ = s.Sealed(q.Gallery, q.Subject, heir.Event, heir.Revision)
	}
	return a, nil
})
