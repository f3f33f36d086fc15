package shardfsm

import (
	"errors"
	"fmt"

	"facet/shard"
	"facet/shard/merging"
)

// Status is the outcome of a command. Only a command with the status Done changes the state.
type Status uint8

// The outcomes of commands. The numbers are stored.
const (
	// Done: the command had its effect. A retry of Unregister or RemoveEvent is Done too.
	Done Status = 1
	// Replayed: the operation was done before. The answer has its ids.
	Replayed Status = 2
	// Conflict: the operation was done before with another request. Or it was done and
	// forgotten, and the subject exists.
	Conflict Status = 3
	// NeedSlots: no granted slot is free, and Recycle is false or there is no deleted
	// entry. The machine does not remember the operation.
	NeedSlots Status = 4
	// StaleGeneration: the slice has another generation.
	StaleGeneration Status = 5
	// OpsFull: the machine can't remember more operations at present.
	OpsFull Status = 6
	// UnknownSubject: the subject has no active event here.
	UnknownSubject Status = 7
	// UnknownEvent: the subject has no such active or pending event.
	UnknownEvent Status = 8
	// Moved: another write came first. The answer has the event and the revision for the
	// next try, which needs another Sealed.
	Moved Status = 9
	// NotFenced: there is no such fence.
	NotFenced Status = 10
	// Activated: the event to withdraw is active.
	Activated Status = 11
	// UnknownJob: there is no such batch.
	UnknownJob Status = 12
	// JobsFull: the machine can't keep more records of jobs at present.
	JobsFull Status = 13
	// JobItemsMissing: the batch lacks the items before these, or has fewer items.
	JobItemsMissing Status = 14
	// Outdated: the gallery lies on more shards than the proposer knew.
	Outdated Status = 15
	// OverWrites and the following: the tenant has used up its share (Share, JobShare).
	OverWrites   Status = 16
	OverJobs     Status = 17
	OverJobItems Status = 18
	// Barred: the claim on the external id is out of date.
	Barred Status = 19
	// Merging: the subject takes part in a merge.
	Merging Status = 20
	// MergesFull: the machine can't keep more merges at present.
	MergesFull Status = 21
	// Refused: the operation was refused before (Refuse). The answer has the subject that had the external id.
	Refused Status = 22
	// UnknownLog: the shard has no audit log of the tenant.
	UnknownLog Status = 32
	// WriterGap: batches of the writer are missing before this one, or the writer was forgotten.
	WriterGap Status = 33
	// LogsFull: the machine can't keep more audit logs or open intents at present.
	LogsFull Status = 34
	// LogBounds: a batch of an audit log is out of bounds.
	LogBounds Status = 35
)

var statusNames = [...]string{
	Done: "done", Replayed: "replayed", Conflict: "conflict", NeedSlots: "need slots",
	StaleGeneration: "stale generation", OpsFull: "operations full", UnknownSubject: "unknown subject",
	UnknownEvent: "unknown event", Moved: "moved", NotFenced: "not fenced", Activated: "activated",
	UnknownJob: "unknown job", JobsFull: "jobs full", JobItemsMissing: "job items missing",
	Outdated: "outdated", OverWrites: "over writes", OverJobs: "over jobs", OverJobItems: "over job items",
	Barred: "barred", Merging: "merging", MergesFull: "merges full", Refused: "refused",
	UnknownLog: "unknown log", WriterGap: "writer gap", LogsFull: "logs full", LogBounds: "log bounds",
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

// statuses maps errors of the shard to statuses.
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
	{merging.ErrBusy, Merging},
	{merging.ErrFull, MergesFull},
}

// statusOf returns the status for an error of the shard.
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
