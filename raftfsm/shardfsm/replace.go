package shardfsm

import (
	"facet/raftfsm/operation"
	"facet/shard"
)

// ReplaceEvent replaces the face of an active event, whose ids stay. The old face becomes a
// deleted entry directly before the new one. The deleted entry takes a free slot, or that
// of the oldest deleted entry. If there is neither, the old face is dropped: a replacement
// never fails for a lack of slots.
type ReplaceEvent struct {
	EventWrite
	// Tags holds identities of tags. KeepTags keeps the old tags instead.
	Tags     []uint32 `cbor:"9,keyasint,omitempty"`
	KeepTags bool     `cbor:"10,keyasint,omitempty"`
	// Sealed is the face, encrypted by shard.SealFace for Revision.
	Sealed []byte `cbor:"11,keyasint"`
	// Revision is the revision of the new face: one more than that of the present face.
	// If the event has another revision by now, the answer is Moved.
	Revision uint32 `cbor:"12,keyasint"`
	// Oldest requires that Event is the subject's active event that was registered first.
	// Otherwise the answer is Moved.
	Oldest bool `cbor:"13,keyasint,omitempty"`
	// Note is the subject's note from now on, sealed by shard.SealNote for Revision, or nil.
	// Only the event that was registered first has one. Noted reports that the event has
	// one now; else the answer is Moved.
	Note []byte `cbor:"15,keyasint,omitempty"`
	// Claimed is as for Register. It is 0 if the subject has the external id already.
	Claimed uint64 `cbor:"16,keyasint,omitempty"`
	Noted   bool   `cbor:"17,keyasint,omitempty"`
	// Expires is when the event expires, in milliseconds since 1970. The zero keeps the
	// time that the event has, and NoExpiry removes it.
	Expires  int64 `cbor:"19,keyasint,omitempty"`
	NoExpiry bool  `cbor:"20,keyasint,omitempty"`
}

func (c ReplaceEvent) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), c.Share, ReplaceEventOp.Code)
	switch {
	case status == Replayed && (done.IDs[0] != c.Subject.UUID || !c.Oldest && done.IDs[1] != c.Event.UUID):
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return refusal(status, done)
	case m.barred(c.Subject, c.Claimed):
		return RegisterAnswer{Status: Barred}
	}
	active, err := m.shard.Update(shard.Replacement{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now,
		Tags: c.Tags, KeepTags: c.KeepTags, Sealed: c.Sealed, Revision: c.Revision, Oldest: c.Oldest,
		Note: c.Note, Noted: c.Noted, Expires: c.Expires, NoExpiry: c.NoExpiry,
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
		IDs: [2][16]byte{c.Subject.UUID, c.Event.UUID}, Number: c.Revision, Owner: c.Share.Tenant,
	})
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Revision: c.Revision}
}
