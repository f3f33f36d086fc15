package shardfsm

import (
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/command"
)

// Status says what became of a command.
type Status uint8

// The outcomes of commands. The numbers are stored.
const (
	// Done: the command had its effect, and this is the answer to it (or, for
	// Unregister, to its retry).
	Done Status = 1
	// Replayed: the operation was done before; the answer has its ids.
	Replayed Status = 2
	// Conflict: the operation was done before with another request, or, being
	// forgotten since, had made this very subject. Nothing changed.
	Conflict Status = 3
	// NeedSlots: no granted slot is free, and Recycle was not set or there is no
	// deleted entry. Nothing changed and the operation is not remembered.
	NeedSlots Status = 4
	// StaleGeneration: the slice has another generation. Nothing changed.
	StaleGeneration Status = 5
	// OpsFull: no more operations can be remembered at present. Nothing changed.
	OpsFull Status = 6
	// UnknownSubject: the subject has no active event here. Nothing changed.
	UnknownSubject Status = 7
	// UnknownEvent: the subject has no such active event, or nothing is pending by
	// this name. Nothing changed.
	UnknownEvent Status = 8
	// Moved: another write came between; the answer has the event and revision that
	// hold now, to be sealed for again. Nothing changed.
	Moved Status = 9
	// NotFenced: there is no such fence. Nothing changed.
	NotFenced Status = 10
	// Activated: the event to be withdrawn is active. Nothing changed.
	Activated Status = 11
	// UnknownJob: there is no such batch. Nothing changed.
	UnknownJob Status = 12
	// JobsFull: no more records of jobs can be kept at present. Nothing changed.
	JobsFull Status = 13
	// JobItemsMissing: the batch does not have the items before these, or has not as
	// many. Nothing changed.
	JobItemsMissing Status = 14
	// Outdated: the gallery lies on more shards than the proposer knew of. Nothing
	// changed.
	Outdated Status = 15
)

var statusNames = [...]string{
	Done: "done", Replayed: "replayed", Conflict: "conflict", NeedSlots: "need slots",
	StaleGeneration: "stale generation", OpsFull: "operations full", UnknownSubject: "unknown subject",
	UnknownEvent: "unknown event", Moved: "moved", NotFenced: "not fenced", Activated: "activated",
	UnknownJob: "unknown job", JobsFull: "jobs full", JobItemsMissing: "job items missing",
	Outdated: "outdated",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) && statusNames[s] != "" {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

const codeGrant = 1

// GrantOp is the command Grant.
var GrantOp = command.Op[Grant, GrantAnswer]{Code: codeGrant, Version: 1}

// Grant tells a shard how many slots its slice of a gallery has in all. It may
// come late, twice or out of order: the largest total counts. The first grant
// makes the slice.
type Grant struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Total      uint32     `cbor:"3,keyasint"`
}

// GrantAnswer is Done or StaleGeneration.
type GrantAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

const codeRegister = 2

// RegisterOp is the command Register.
var RegisterOp = command.Op[Register, RegisterAnswer]{Code: codeRegister, Version: 1}

// Register adds a new subject with one event.
type Register struct {
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
	// Tags are identities of tags.
	Tags []uint32 `cbor:"9,keyasint,omitempty"`
	// Sealed is the face, by shard.SealFace for Gallery, Generation, Subject, Event.
	Sealed []byte `cbor:"10,keyasint"`
	// Recycle permits the slot of the slice's oldest deleted entry when no other is
	// free.
	Recycle bool `cbor:"11,keyasint,omitempty"`
	// Pending asks for an event that holds a slot but is seen by SearchPending only,
	// until Activate; after PendingMillis it is gone. The operation is not remembered
	// before Activate: the same command again is Done again, and renews the time. The
	// answer has a Claim.
	Pending bool `cbor:"12,keyasint,omitempty"`
	// Epoch is the gallery's by which its shard was chosen; if the shard knows a later
	// one, the answer is Outdated, unless the operation was done. 0 does not ask.
	Epoch uint32 `cbor:"13,keyasint,omitempty"`
}

// PendingMillis is how long a pending event lasts, by the times of commands.
const PendingMillis = 30_000

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

const codeUnregister = 3

// UnregisterOp is the command Unregister.
var UnregisterOp = command.Op[Unregister, UnregisterAnswer]{Code: codeUnregister, Version: 1}

// Unregister removes a subject: all its active events become deleted entries. Op
// names this attempt of the client's and its internal retries; a client's request
// that simply runs again needs another one.
type Unregister struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Op         id.Operation `cbor:"3,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time    int64      `cbor:"4,keyasint"`
	Subject id.Subject `cbor:"5,keyasint"`
}

// UnregisterAnswer is Done, UnknownSubject, StaleGeneration, OpsFull, or Conflict
// when Op was used for something else. UnknownSubject is not remembered.
type UnregisterAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Time is that of the deleted entries, for Done.
	Time int64 `cbor:"2,keyasint"`
}
