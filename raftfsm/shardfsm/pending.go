package shardfsm

import (
	"facet/internal/id"
	"facet/shard"
)

// Activate makes a pending event active. Op, Request and Keyed are those of the Register or
// AddEvent that created the event. Activate alone makes the machine remember that
// operation. The answer's status is one of:
//
//   - Done, Replayed, Conflict, OpsFull, OverWrites, StaleGeneration or Refused.
//   - UnknownEvent: the event was not pending without a break since the answer with
//     Claim. A rival may have withdrawn it and then searched without finding it. The
//     proposer starts again with the registration.
//   - UnknownSubject: the subject of a further event is gone.
type Activate struct {
	EventWrite
	// Claim is from the answer to Register or AddEvent, before the search.
	Claim uint64 `cbor:"9,keyasint"`
}

func (c Activate) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), c.Share, RegisterOp.Code, AddEventOp.Code)
	switch {
	case status == Replayed && done.IDs != [2][16]byte{c.Subject.UUID, c.Event.UUID}:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return refusal(status, done)
	}
	further, err := m.shard.Activate(shard.PendingRef{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Op: c.Op, Request: c.Request, Number: c.Claim, Time: now,
	})
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	code := RegisterOp.Code
	if further {
		code = AddEventOp.Code
	}
	m.remember(c.Gallery, c.name(), c.Share, code, c.Subject.UUID, c.Event.UUID)
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now}
}

// Withdraw removes a pending event, of this proposer or of a rival. A proposer that wants to
// activate its event while a rival's is pending must withdraw the rival's first: the rival
// may have finished its search and be about to activate. The status is Done, also if the
// event is not pending, Activated or StaleGeneration.
type Withdraw struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
	Event      id.Event   `cbor:"4,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
}

func (c Withdraw) apply(m *Machine) StatusAnswer {
	m.advance(c.Time)
	err := m.shard.Withdraw(c.Gallery, c.Generation, c.Subject, c.Event)
	return StatusAnswer{statusOf(err)}
}
