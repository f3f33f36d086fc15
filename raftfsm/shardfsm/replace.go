package shardfsm

import (
	"facet/raftfsm/operation"
	"facet/shard"
)

// ReplaceEvent puts a new face in the place of an active event's, whose ids stay.
// What was before becomes a deleted entry directly before the new one; it takes a
// free slot, else that of the oldest deleted entry, else none: then it is left out,
// so that an update needs no slot. The answer is a RegisterAnswer.
type ReplaceEvent struct {
	EventWrite
	// Tags are identities of tags; they are ignored with KeepTags.
	Tags     []uint32 `cbor:"9,keyasint,omitempty"`
	KeepTags bool     `cbor:"10,keyasint,omitempty"`
	// Sealed is the face, by shard.SealFace for Revision.
	Sealed []byte `cbor:"11,keyasint"`
	// Revision is the one that this write makes: one more than the present event's.
	// When the event has another by now the answer is Moved.
	Revision uint32 `cbor:"12,keyasint"`
	// Oldest demands that Event is the oldest active one of the subject, by
	// registration; otherwise the answer is Moved.
	Oldest bool `cbor:"13,keyasint,omitempty"`
}

func (c ReplaceEvent) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), ReplaceEventOp.Code)
	switch {
	case status == Replayed && (done.IDs[0] != c.Subject.UUID || !c.Oldest && done.IDs[1] != c.Event.UUID):
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	}
	active, err := m.shard.Update(shard.Replacement{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now,
		Tags: c.Tags, KeepTags: c.KeepTags, Sealed: c.Sealed, Revision: c.Revision, Oldest: c.Oldest,
	})
	switch status := statusOf(err); status {
	case Done:
	case Moved:
		return RegisterAnswer{Status: Moved, Subject: c.Subject, Event: active.Event, Revision: active.Revision + 1}
	default:
		return RegisterAnswer{Status: status}
	}
	m.ops.Remember(operation.Outcome{
		Name: c.name(), Kind: ReplaceEventOp.Code, Scope: c.Gallery.UUID,
		IDs: [2][16]byte{c.Subject.UUID, c.Event.UUID}, Number: c.Revision,
	})
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Revision: c.Revision}
}
