package shardfsm

import (
	"errors"
	"fmt"

	"facet/shard"
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

// StatusAnswer answers a command that returns only a status.
type StatusAnswer struct {
	Status Status `cbor:"1,keyasint"`
}

// statuses are the outcomes that errors of the shard stand for.
var statuses = []struct {
	err    error
	status Status
}{
	{shard.ErrGeneration, StaleGeneration},
	{shard.ErrNoSlot, NeedSlots},
	{shard.ErrExists, Conflict},
	{shard.ErrSubject, UnknownSubject},
	{shard.ErrEvent, UnknownEvent},
	{shard.ErrMoved, Moved},
	{shard.ErrFence, NotFenced},
	{shard.ErrActive, Activated},
}

// statusOf is the outcome that an error of the shard stands for.
func statusOf(err error) Status {
	if err == nil {
		return Done
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	panic("bug: a write fails in an unknown way: " + err.Error())
}
