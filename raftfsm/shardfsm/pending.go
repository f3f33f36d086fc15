package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/raftfsm/operation"
	"facet/shard"
)

const codeActivate = 10

// ActivateOp is the command Activate.
var ActivateOp = command.Op[Activate, RegisterAnswer]{Code: codeActivate, Version: 1}

// Activate makes a pending event active. Op, Request and Keyed are those of the
// Register or AddEvent that made it, which is remembered by this only. The answer
// is a RegisterAnswer: Done, Replayed, Conflict, OpsFull, StaleGeneration,
// UnknownEvent when it is not pending any more, or was not all the time since Claim
// was answered (a rival may have withdrawn it and been searched for in vain: begin
// again with the registration), or UnknownSubject when the subject of a further
// event is gone.
type Activate struct {
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
	// Claim is that of the answer that came before the search.
	Claim uint64 `cbor:"9,keyasint"`
}

func (c Activate) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	done, status := m.once(place{c.Gallery, c.Generation}, name, codeRegister, codeAddEvent)
	switch {
	case status == Replayed && done.IDs != [2][16]byte{c.Subject.UUID, c.Event.UUID}:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	}
	further, err := m.shard.Pending().Activate(shard.PendingRef{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Op: c.Op, Request: c.Request, Number: c.Claim, Time: now,
	})
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	code := byte(codeRegister)
	if further {
		code = codeAddEvent
	}
	m.remember(c.Gallery, name, code, c.Subject.UUID, c.Event.UUID)
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now}
}

const codeWithdraw = 11

// WithdrawOp is the command Withdraw.
var WithdrawOp = command.Op[Withdraw, WithdrawAnswer]{Code: codeWithdraw, Version: 1}

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

// WithdrawAnswer is Done (it is pending no more, or never was), Activated or
// StaleGeneration.
type WithdrawAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

func (c Withdraw) apply(m *Machine) WithdrawAnswer {
	m.advance(c.Time)
	err := m.shard.Pending().Withdraw(c.Gallery, c.Generation, c.Subject, c.Event)
	return WithdrawAnswer{statusOf(err)}
}
