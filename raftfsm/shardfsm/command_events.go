package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/command"
)

const codeAddEvent = 4

// AddEventOp is the command AddEvent.
var AddEventOp = command.Op[AddEvent, RegisterAnswer]{Code: codeAddEvent, Version: 1}

// AddEvent adds a further event to a subject that has an active one. Its answer is
// a RegisterAnswer; its Epoch is 0, since the subject says where it belongs.
type AddEvent Register

const codeReplaceEvent = 5

// ReplaceEventOp is the command ReplaceEvent.
var ReplaceEventOp = command.Op[ReplaceEvent, RegisterAnswer]{Code: codeReplaceEvent, Version: 1}

// ReplaceEvent puts a new face in the place of an active event's, whose ids stay.
// What was before becomes a deleted entry directly before the new one; it takes a
// free slot, else that of the oldest deleted entry, else none: then it is left out,
// so that an update needs no slot. The answer is a RegisterAnswer.
type ReplaceEvent struct {
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

const codeRemoveEvent = 6

// RemoveEventOp is the command RemoveEvent.
var RemoveEventOp = command.Op[RemoveEvent, UnregisterAnswer]{Code: codeRemoveEvent, Version: 1}

// RemoveEvent turns an active event into a deleted entry; the last one removes the
// subject. Op names this attempt, as in Unregister. The answer is an
// UnregisterAnswer, which may also be UnknownEvent.
type RemoveEvent struct {
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
