package shardfsm

import (
	"fmt"

	"facet/internal/codec"
	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard"
)

// The codes of commands and answers. The numbers are stored and never reused.
var (
	headGrant      = codec.Head{Code: 1, Version: 1}
	headRegister   = codec.Head{Code: 2, Version: 1}
	headUnregister = codec.Head{Code: 3, Version: 1}

	headGrantAnswer      = codec.Head{Code: 0x41, Version: 1}
	headRegisterAnswer   = codec.Head{Code: 0x42, Version: 1}
	headUnregisterAnswer = codec.Head{Code: 0x43, Version: 1}
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
	// OpsFull: no more operations can be remembered for now. Nothing changed.
	OpsFull Status = 6
	// UnknownSubject: the subject has no active event here. Nothing changed.
	UnknownSubject Status = 7
)

var statusNames = [...]string{
	Done: "done", Replayed: "replayed", Conflict: "conflict", NeedSlots: "need slots",
	StaleGeneration: "stale generation", OpsFull: "operations full", UnknownSubject: "unknown subject",
}

// String names the status.
func (s Status) String() string {
	if int(s) < len(statusNames) && statusNames[s] != "" {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

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
}

// RegisterAnswer is Done, Replayed, Conflict, NeedSlots, StaleGeneration or
// OpsFull. The ids and time are set for Done and Replayed.
type RegisterAnswer struct {
	Status  Status     `cbor:"1,keyasint"`
	Subject id.Subject `cbor:"2,keyasint"`
	Event   id.Event   `cbor:"3,keyasint"`
	// Time is the event's, in milliseconds since 1970: not before any earlier one.
	Time int64 `cbor:"4,keyasint"`
	// Sealed is the stored face for Replayed, if its event is still active.
	Sealed []byte `cbor:"5,keyasint,omitempty"`
}

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

// Encode gives the bytes to propose.
func (c Grant) Encode() []byte { return codec.Encode(headGrant, c) }

// Encode gives the bytes to propose.
func (c Register) Encode() []byte { return codec.Encode(headRegister, c) }

// Encode gives the bytes to propose.
func (c Unregister) Encode() []byte { return codec.Encode(headUnregister, c) }

// ParseGrantAnswer reads the answer to a Grant; the error wraps
// codec.ErrMalformed.
func ParseGrantAnswer(b []byte) (GrantAnswer, error) {
	return parse[GrantAnswer](b, headGrantAnswer)
}

// ParseRegisterAnswer reads the answer to a Register; the error wraps
// codec.ErrMalformed.
func ParseRegisterAnswer(b []byte) (RegisterAnswer, error) {
	return parse[RegisterAnswer](b, headRegisterAnswer)
}

// ParseUnregisterAnswer reads the answer to an Unregister; the error wraps
// codec.ErrMalformed.
func ParseUnregisterAnswer(b []byte) (UnregisterAnswer, error) {
	return parse[UnregisterAnswer](b, headUnregisterAnswer)
}

func parse[T any](b []byte, h codec.Head) (T, error) {
	var v T
	err := codec.Decode(b, h, &v)
	return v, err
}

// command is a decoded command.
type command interface {
	apply(m *Machine) []byte
}

// decode reads a command. skip tells that it is one that this binary does not know
// and may leave out.
func decode(b []byte) (c command, skip bool, err error) {
	m, err := codec.Split(b)
	if err != nil {
		return nil, false, err
	}
	switch m.Code {
	case headGrant.Code:
		c, err = body[Grant](m, headGrant)
	case headRegister.Code:
		c, err = body[Register](m, headRegister)
	case headUnregister.Code:
		c, err = body[Unregister](m, headUnregister)
	default:
		if m.Code&codec.Skippable != 0 {
			return nil, true, nil
		}
		err = fmt.Errorf("%w: unknown command %d", codec.ErrMalformed, m.Code)
	}
	if err != nil {
		return nil, false, err
	}
	return c, false, nil
}

func body[T any](m codec.Message, h codec.Head) (T, error) {
	var v T
	err := m.Decode(h, &v)
	return v, err
}

func (c Register) name() operation.Name {
	return operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
}

func (c Register) event(time int64) shard.Event {
	return shard.Event{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Time: time, Tags: c.Tags, Sealed: c.Sealed,
	}
}
