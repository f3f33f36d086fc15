package shardfsm

import (
	"facet/internal/id"
	"facet/internal/mutant"
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
}

func (w EventWrite) place() place { return place{w.Gallery, w.Generation} }

func (w EventWrite) name() operation.Name {
	return operation.Name{Op: w.Op, Request: w.Request, Keyed: w.Keyed}
}

// Register adds a new subject with one event.
type Register struct {
	EventWrite
	// Tags are identities of tags.
	Tags []uint32 `cbor:"9,keyasint,omitempty"`
	// Sealed is the face, by shard.SealFace for Gallery, Generation, Subject, Event.
	Sealed []byte `cbor:"10,keyasint"`
	// Recycle permits the slot of the slice's oldest deleted entry when no other is
	// free.
	Recycle bool `cbor:"11,keyasint,omitempty"`
	// Pending asks for an event that holds a slot but is seen by shard.Pending only,
	// until Activate; after PendingMillis it is gone. The operation is not remembered
	// before Activate: the same command again is Done again, and renews the time. The
	// answer has a Claim.
	Pending bool `cbor:"12,keyasint,omitempty"`
	// Epoch is the gallery's by which its shard was chosen; if the shard knows a later
	// one, the answer is Outdated, unless the operation was done. 0 does not ask.
	Epoch uint32 `cbor:"13,keyasint,omitempty"`
}

// RegisterAnswer answers Register (Done, Replayed, Conflict, NeedSlots,
// StaleGeneration, OpsFull), AddEvent (these and UnknownSubject), ReplaceEvent
// (Done, Replayed, Conflict, StaleGeneration, OpsFull, UnknownSubject,
// UnknownEvent, Moved) and Activate. The ids and time are set for Done and
// Replayed.
type RegisterAnswer struct {
	Status  Status     `cbor:"1,keyasint"`
	Subject id.Subject `cbor:"2,keyasint"`
	// Event, for Moved, is the one to replace now.
	Event id.Event `cbor:"3,keyasint"`
	// Time is the event's, in milliseconds since 1970: not before any earlier one.
	Time int64 `cbor:"4,keyasint"`
	// Sealed is the stored face for Replayed, if its event is still active and was
	// not replaced since.
	Sealed []byte `cbor:"5,keyasint,omitempty"`
	// Revision is that of the event that was made (and of Sealed); for Moved, the one
	// that the next try makes.
	Revision uint32 `cbor:"6,keyasint,omitempty"`
	// Claim, of an event that is pending, is what Activate has to bring.
	Claim uint64 `cbor:"7,keyasint,omitempty"`
}

func (c Register) apply(m *Machine) RegisterAnswer {
	return m.enrol(enrolment(c), RegisterOp.Code)
}

// AddEvent adds a further event to a subject that has an active one. Its answer is
// a RegisterAnswer; its Epoch is 0, since the subject says where it belongs.
type AddEvent Register

func (c AddEvent) apply(m *Machine) RegisterAnswer {
	return m.enrol(enrolment(c), AddEventOp.Code)
}

// enrolment is a Register or an AddEvent.
type enrolment Register

func (c enrolment) event(time int64) shard.Event {
	if mutant.MapOrder {
		c.Tags = mutant.Shuffle(c.Tags)
	}
	return shard.Event{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Time: time, Tags: c.Tags, Sealed: c.Sealed, Op: c.Op, Request: c.Request,
	}
}

func (c enrolment) reuse() shard.Reuse {
	if c.Recycle {
		return shard.OldestDeleted
	}
	return shard.FreeSlots
}

func (m *Machine) enrol(c enrolment, code byte) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), code)
	switch {
	case status == Replayed && code == AddEventOp.Code && done.IDs[0] != c.Subject.UUID:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	case c.Epoch != 0 && m.shard.Epoch(c.Gallery) > c.Epoch && !mutant.OldEpochEnrols:
		return RegisterAnswer{Status: Outdated}
	}
	claim, err := m.put(c, code, now)
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	if !c.Pending {
		m.remember(c.Gallery, c.name(), code, c.Subject.UUID, c.Event.UUID)
	}
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Claim: claim}
}

// put adds the event, pending or not; claim is 0 if not.
func (m *Machine) put(c enrolment, code byte, now int64) (claim uint64, err error) {
	switch further := code == AddEventOp.Code; {
	case c.Pending && further:
		return m.shard.Pending().HoldFurther(c.event(now), c.reuse())
	case c.Pending:
		return m.shard.Pending().Hold(c.event(now), c.reuse())
	case further:
		return 0, m.shard.Add(c.event(now), c.reuse())
	default:
		return 0, m.shard.Put(c.event(now), c.reuse())
	}
}

// replayed answers an operation that made an event and was done before.
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
