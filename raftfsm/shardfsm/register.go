package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard"
)

// EventWrite identifies one write of a client to one event.
type EventWrite struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Op         id.Operation `cbor:"3,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"4,keyasint"`
	// Keyed operations are remembered for 24 hours, others for 10 minutes.
	Keyed   bool       `cbor:"5,keyasint,omitempty"`
	Subject id.Subject `cbor:"6,keyasint"`
	Event   id.Event   `cbor:"7,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"8,keyasint"`
	// Share is the tenant's.
	Share Share `cbor:"14,keyasint,omitzero"`
}

func (w EventWrite) place() place { return place{w.Gallery, w.Generation} }

func (w EventWrite) name() operation.Name {
	return operation.Name{Op: w.Op, Request: w.Request, Keyed: w.Keyed}
}

// Register adds a new subject with one event.
type Register struct {
	EventWrite
	// Tags holds identities of tags.
	Tags []uint32 `cbor:"9,keyasint,omitempty"`
	// Sealed is the face, encrypted by shard.SealFace for Gallery, Generation, Subject and
	// Event.
	Sealed []byte `cbor:"10,keyasint"`
	// Recycle allows the event to take the slot of the oldest deleted entry if no slot is
	// free.
	Recycle bool `cbor:"11,keyasint,omitempty"`
	// Pending asks for a pending event, which has a slot but is visible only to
	// Shard.SearchPending until Activate. It expires after PendingMillis. The machine does not
	// remember the operation before Activate: a repeated command is Done again and renews
	// the time. The answer has a Claim.
	Pending bool `cbor:"12,keyasint,omitempty"`
	// Epoch is the gallery's epoch with which the proposer chose the shard. If the shard
	// knows a later one, the answer is Outdated, unless the operation was done before. 0
	// skips the check.
	Epoch uint32 `cbor:"13,keyasint,omitempty"`
	// Note is the note of a new subject, sealed by shard.SealNote for the event, or nil. Note
	// and Claimed are for Register only.
	Note []byte `cbor:"15,keyasint,omitempty"`
	// Claimed is one more than the count of bars (claim.Book.Bars) that the proposer read
	// before it claimed the note's external id, or 0 if the note has none.
	Claimed uint64 `cbor:"16,keyasint,omitempty"`
	// Source is the subject from which a merge copies the event, for AddEvent only, or zero.
	Source id.Subject `cbor:"21,keyasint,omitzero"`
	// Expires is when the event expires, in milliseconds since 1970, or 0.
	Expires int64 `cbor:"19,keyasint,omitempty"`
}

// RegisterAnswer answers Register, AddEvent, ReplaceEvent and Activate. The status of the
// first three is Done, Replayed, Conflict, StaleGeneration, OpsFull, OverWrites, or:
//
//   - Register: NeedSlots, Outdated, Barred or Refused.
//   - AddEvent: NeedSlots or UnknownSubject; with Source Merging or MergesFull.
//   - ReplaceEvent: UnknownSubject, UnknownEvent, Moved, Barred or Refused.
//
// The ids and the time are set for Done and Replayed. For Refused, Subject is the one that had the
// external id.
type RegisterAnswer struct {
	Status  Status     `cbor:"1,keyasint"`
	Subject id.Subject `cbor:"2,keyasint"`
	// Event is the event of the write. For Moved, it is the event to replace now.
	Event id.Event `cbor:"3,keyasint"`
	// Time is the time of the event, in milliseconds since 1970. Times never decrease.
	Time int64 `cbor:"4,keyasint"`
	// Sealed is the stored face, for Replayed if the event is active and was not replaced
	// since.
	Sealed []byte `cbor:"5,keyasint,omitempty"`
	// Revision is that of the written event and of Sealed. For Moved, it is the revision
	// of the next try.
	Revision uint32 `cbor:"6,keyasint,omitempty"`
	// Claim is the number that Activate needs, for a pending event.
	Claim uint64 `cbor:"7,keyasint,omitempty"`
}

func (c Register) apply(m *Machine) RegisterAnswer {
	return m.enrol(c, RegisterOp.Code)
}

// AddEvent adds a further event to a subject that has an active one. Its Epoch is 0,
// because the subject's id names the shard.
type AddEvent struct{ Register }

func (c AddEvent) apply(m *Machine) RegisterAnswer {
	return m.enrol(c.Register, AddEventOp.Code)
}

func (c Register) event(time int64) shard.Event {
	return shard.Event{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Time: time, Tags: c.Tags, Sealed: c.Sealed, Op: c.Op, Request: c.Request, Note: c.Note, Expires: c.Expires,
	}
}

func (c Register) reuse() shard.Reuse {
	if c.Recycle {
		return shard.OldestDeleted
	}
	return shard.FreeSlots
}

func (m *Machine) enrol(c Register, code byte) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), c.Share, code)
	switch {
	case status == Replayed && code == AddEventOp.Code && done.IDs[0] != c.Subject.UUID:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return refusal(status, done)
	case c.Epoch != 0 && m.shard.Epoch(c.Gallery) > c.Epoch:
		return RegisterAnswer{Status: Outdated}
	case m.barred(c.Subject, c.Claimed):
		return RegisterAnswer{Status: Barred}
	}
	if status := m.receive(c); status != Done {
		return RegisterAnswer{Status: status}
	}
	claim, err := m.put(c, code, now)
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	if !c.Pending {
		m.remember(c.Gallery, c.name(), c.Share, code, c.Subject.UUID, c.Event.UUID)
	}
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Claim: claim}
}

// put adds the event, pending or active. claim is 0 for an active event.
func (m *Machine) put(c Register, code byte, now int64) (claim uint64, err error) {
	switch further := code == AddEventOp.Code; {
	case c.Pending && further:
		return m.shard.HoldFurther(c.event(now), c.reuse())
	case c.Pending:
		return m.shard.Hold(c.event(now), c.reuse())
	case further:
		return 0, m.shard.Add(c.event(now), c.reuse())
	default:
		return 0, m.shard.Put(c.event(now), c.reuse())
	}
}

// replayed answers a write of an event that was done before.
func (m *Machine) replayed(g id.Gallery, done operation.Outcome) RegisterAnswer {
	a := RegisterAnswer{
		Status:   Replayed,
		Subject:  id.Subject{UUID: done.IDs[0]},
		Event:    id.Event{UUID: done.IDs[1]},
		Time:     done.Time,
		Revision: done.Number,
	}
	a.Sealed, _ = m.shard.Sealed(g, a.Subject, a.Event, a.Revision)
	return a
}
