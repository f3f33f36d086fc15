package shardfsm

import (
	"facet/internal/id"
	"facet/shard"
)

// Activate makes a pending event active. Op, Request and Keyed are those of the
// Register or AddEvent that made it, which is remembered by this only. The answer
// is a RegisterAnswer: Done, Replayed, Conflict, OpsFull, StaleGeneration,
// UnknownEvent when it is not pending any more, or was not all the time since Claim
// was answered (a rival may have withdrawn it and been searched for in vain: begin
// again with the registration), or UnknownSubject when the subject of a further
// event is gone.
type Activate struct {
	EventWrite
	// Claim is that of the answer that came before the search.
	Claim uint64 `cbor:"9,keyasint"`
}

func (c Activate) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), RegisterOp.Code, AddEventOp.Code)
	switch {
	case status == Replayed && done.IDs != [2][16]byte{c.Subject.UUID, c.Event.UUID}:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	}
	further, err := m.shard.Pending().Activate(shard.Claimed{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Op: c.Op, Request: c.Request, Number: c.Claim, Time: now,
	})
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	code := byte(RegisterOp.Code)
	if further {
		code = AddEventOp.Code
	}
	m.remember(c.Gallery, c.name(), code, c.Subject.UUID, c.Event.UUID)
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now}
}

// Withdraw takes a pending event away, its own or a rival's. Whoever means to
// activate in spite of a rival that is pending has to withdraw the rival first:
// it may have searched before, and be about to activate.
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
	err := m.shard.Pending().Withdraw(c.Gallery, c.Generation, c.Subject, c.Event)
	return StatusAnswer{statusOf(err)}
}
