package shardfsm

import (
	"errors"

	"facet/internal/id"
	"facet/shard"
	"facet/shard/merging"
)

// Merges returns the merges of subjects (package merging). Restore keeps the object.
func (m *Machine) Merges() *merging.Book { return m.merges }

// BeginMerge begins to merge the subject into Target, which may be on another shard. Event is
// zero.
type BeginMerge struct {
	EventWrite
	Target id.Subject `cbor:"21,keyasint"`
}

// apply answers with one of:
//
//   - Done: the merge is under way, or was already.
//   - Replayed: it has ended, and the subject is gone.
//   - Merging: the subject takes part in another merge, or is the target itself.
//   - Conflict, OpsFull, OverWrites, MergesFull, UnknownSubject or StaleGeneration.
func (c BeginMerge) apply(m *Machine) StatusAnswer {
	m.advance(c.Time)
	done, status := m.once(c.place(), c.name(), c.Share, BeginMergeOp.Code)
	if status == Replayed && done.IDs != [2][16]byte{c.Subject.UUID, c.Target.UUID} {
		status = Conflict
	}
	if status == 0 && c.Subject == c.Target {
		status = Merging
	}
	if status != 0 {
		return StatusAnswer{status}
	}
	if err := m.shard.Knows(c.Gallery, c.Generation, c.Subject); err != nil {
		return StatusAnswer{statusOf(err)}
	}
	return StatusAnswer{statusOf(m.merges.Begin(merging.Merge{
		Gallery: c.Gallery, Generation: c.Generation, Source: c.Subject, Target: c.Target,
		Op: c.Op, Request: c.Request, Keyed: c.Keyed, Tenant: c.Share.Tenant, Number: m.index,
	}))}
}

// EndMerge removes the source of a merge. Faces are all its active events; with others the
// answer is Moved. The machine then remembers the operation of BeginMerge. The answer is Done,
// also without such a merge or when it is given up, Moved, OpsFull or StaleGeneration.
type EndMerge struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Source     id.Subject `cbor:"3,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time  int64          `cbor:"4,keyasint"`
	Faces []shard.FaceID `cbor:"5,keyasint"`
	// Copied is an index of the log of the target's shard, if that is another one. The shard has
	// all copies at this index.
	Copied uint64 `cbor:"6,keyasint,omitempty"`
}

func (c EndMerge) apply(m *Machine) StatusAnswer {
	now := m.advance(c.Time)
	if err := m.shard.Check(c.Gallery, c.Generation); err != nil {
		return StatusAnswer{statusOf(err)}
	}
	under, ok := m.merges.Of(c.Source)
	if !ok || under.Ended != 0 || under.Refused != 0 {
		return StatusAnswer{Done}
	}
	w := EventWrite{Op: under.Op, Request: under.Request, Keyed: under.Keyed}
	if _, known := m.ops.Recall(under.Op); !known && m.ops.Full(w.name()) {
		return StatusAnswer{OpsFull}
	}
	err := m.shard.EraseExactly(shard.Erasure{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Source, Time: now}, c.Faces)
	if err != nil && !errors.Is(err, shard.ErrSubject) { // without the subject there is nothing to remove
		return StatusAnswer{statusOf(err)}
	}
	m.merges.End(c.Source, now, 0)
	if c.Copied > 0 {
		m.merges.Removed(under.Target.Shard(), c.Copied)
	}
	if _, known := m.ops.Recall(under.Op); !known {
		m.remember(c.Gallery, w.name(), Share{Tenant: under.Tenant}, BeginMergeOp.Code, c.Source.UUID, under.Target.UUID)
	}
	return StatusAnswer{Done}
}

// StopReceiving takes the mark away that AddEvent set with Source. The answer is Done.
type StopReceiving struct {
	Target id.Subject `cbor:"1,keyasint"`
	Source id.Subject `cbor:"2,keyasint"`
}

func (c StopReceiving) apply(m *Machine) StatusAnswer {
	m.merges.Stop(c.Target, c.Source)
	return StatusAnswer{Done}
}

// GiveUpMerge is the command that gives up a merge; its source stays. With Undone, the copies have
// been removed, and the merge ends. The answer is Done.
type GiveUpMerge struct {
	Source id.Subject `cbor:"1,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time   int64           `cbor:"2,keyasint"`
	Why    merging.Refusal `cbor:"3,keyasint"`
	Undone bool            `cbor:"4,keyasint,omitempty"`
}

func (c GiveUpMerge) apply(m *Machine) StatusAnswer {
	now := m.advance(c.Time)
	switch {
	case !m.merges.Leaves(c.Source):
	case c.Undone:
		m.merges.End(c.Source, now, c.Why)
	default:
		m.merges.Refuse(c.Source, c.Why)
	}
	return StatusAnswer{Done}
}

// ForgetMerge drops a merge that has ended. The answer is Done.
type ForgetMerge struct {
	Source id.Subject `cbor:"1,keyasint"`
}

func (c ForgetMerge) apply(m *Machine) StatusAnswer {
	m.merges.Forget(c.Source)
	return StatusAnswer{Done}
}

// receive marks that a subject receives the events of another.
func (m *Machine) receive(c Register) Status {
	if c.Source.IsZero() {
		return Done
	}
	return statusOf(m.merges.Receive(c.Gallery, c.Generation, c.Subject, c.Source))
}
