package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard"
	"facet/shard/merging"
)

// Unregister removes a subject: all its active events become deleted entries. Op names one
// attempt of the client with its internal retries: a request that the client sends again
// has another Op.
type Unregister struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Op         id.Operation `cbor:"3,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time    int64      `cbor:"4,keyasint"`
	Subject id.Subject `cbor:"5,keyasint"`
	// Share is the tenant's.
	Share Share `cbor:"6,keyasint,omitzero"`
}

// UnregisterAnswer answers Unregister and RemoveEvent. The status is Done, UnknownSubject,
// StaleGeneration, OpsFull, OverWrites, or Conflict if another write has the Op. It is Merging
// while the subject is the source of a merge, and for Unregister also while it is the target.
// RemoveEvent may also answer UnknownEvent, or Moved if the event has the
// note and the heir is another. The machine remembers only an operation that is Done.
type UnregisterAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Time is the time of the deleted entries, for Done.
	Time int64 `cbor:"2,keyasint"`
}

func (c Unregister) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	return m.remove(removal{place{c.Gallery, c.Generation}, operation.Name{Op: c.Op}, c.Share, UnregisterOp.Code, [2][16]byte{c.Subject.UUID}}, now, func() error {
		if m.merges.Leaves(c.Subject) || m.merges.Receives(c.Subject) {
			return merging.ErrBusy
		}
		return m.shard.Erase(shard.Erasure{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Time: now})
	})
}

// RemoveEvent turns an active event into a deleted entry. The removal of the last event
// removes the subject. For Op see Unregister.
type RemoveEvent struct {
	EventWrite
	// Heir is the subject's next event, which gets the note of the removed one.
	Heir Heir `cbor:"15,keyasint,omitzero"`
}

// Heir is an event that gets the note of another.
type Heir struct {
	Event    id.Event `cbor:"1,keyasint"`
	Revision uint32   `cbor:"2,keyasint,omitempty"`
	// Sealed is its face, as it is. Note is the subject's note, sealed by shard.SealNote
	// for the event.
	Sealed []byte `cbor:"3,keyasint"`
	Note   []byte `cbor:"4,keyasint"`
	// Expires is when the entry with the note expires, in milliseconds since 1970, or 0: not
	// later than the event as it is.
	Expires int64 `cbor:"5,keyasint,omitempty"`
}

func (c RemoveEvent) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	return m.remove(removal{c.place(), c.name(), c.Share, RemoveEventOp.Code, [2][16]byte{c.Subject.UUID, c.Event.UUID}}, now, func() error {
		if m.merges.Leaves(c.Subject) {
			return merging.ErrBusy
		}
		return m.shard.Remove(shard.Removal{
			Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now, Heir: shard.Heir(c.Heir),
		})
	})
}

// removal is an operation that removes the events or the subject with the ids.
type removal struct {
	place
	name  operation.Name
	share Share
	code  byte
	ids   [2][16]byte
}

// remove calls effect, unless the removal was done before.
func (m *Machine) remove(r removal, now int64, effect func() error) UnregisterAnswer {
	done, status := m.once(r.place, r.name, r.share, r.code)
	switch {
	case status == Replayed && done.IDs != r.ids:
		return UnregisterAnswer{Status: Conflict}
	case status == Replayed:
		return UnregisterAnswer{Status: Done, Time: done.Time}
	case status != 0:
		return UnregisterAnswer{Status: status}
	}
	if err := effect(); err != nil {
		return UnregisterAnswer{Status: statusOf(err)}
	}
	m.remember(r.gallery, r.name, r.share, r.code, r.ids[0], r.ids[1])
	return UnregisterAnswer{Status: Done, Time: now}
}
