package shardfsm

import (
	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard"
)

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

func (c Unregister) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	return m.remove(removal{place{c.Gallery, c.Generation}, operation.Name{Op: c.Op}, UnregisterOp.Code, [2][16]byte{c.Subject.UUID}}, now, func() error {
		return m.shard.Erase(shard.Erasure{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Time: now})
	})
}

// RemoveEvent turns an active event into a deleted entry; the last one removes the
// subject. Op names this attempt, as in Unregister. The answer is an
// UnregisterAnswer, which may also be UnknownEvent.
type RemoveEvent struct {
	EventWrite
}

func (c RemoveEvent) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	return m.remove(removal{c.place(), c.name(), RemoveEventOp.Code, [2][16]byte{c.Subject.UUID, c.Event.UUID}}, now, func() error {
		return m.shard.Remove(shard.Removal{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now})
	})
}

// removal names an operation that removes ids.
type removal struct {
	place
	name operation.Name
	code byte
	ids  [2][16]byte
}

// remove carries out a removal once.
func (m *Machine) remove(r removal, now int64, effect func() error) UnregisterAnswer {
	done, status := m.once(r.place, r.name, r.code)
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
	m.remember(r.gallery, r.name, r.code, r.ids[0], r.ids[1])
	return UnregisterAnswer{Status: Done, Time: now}
}
