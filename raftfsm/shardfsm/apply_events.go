package shardfsm

import (
	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/operation"
	"facet/shard"
)

func (c Register) apply(m *Machine) RegisterAnswer {
	return m.enrol(enrolment(c), codeRegister)
}

func (c AddEvent) apply(m *Machine) RegisterAnswer {
	return m.enrol(enrolment(c), codeAddEvent)
}

// enrolment is a Register or an AddEvent.
type enrolment Register

func (c enrolment) name() operation.Name {
	return operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
}

func (c enrolment) event(time int64) shard.Event {
	if mutant.MapOrder {
		c.Tags = mutant.Shuffle(c.Tags)
	}
	return shard.Event{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event,
		Time: time, Tags: c.Tags, Sealed: c.Sealed, Op: c.Op, Request: c.Request,
	}
}

func (c enrolment) reuse() shard.Reuse {
	if c.Recycle {
		return shard.OldestDeleted
	}
	return shard.FreeSlots
}

func (m *Machine) enrol(c enrolment, code byte) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(place{c.Gallery, c.Generation}, c.name(), code)
	switch {
	case status == Replayed && code == codeAddEvent && done.IDs[0] != c.Subject.UUID:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	case c.Epoch != 0 && m.shard.Epoch(c.Gallery) > c.Epoch && !mutant.OldEpochEnrols:
		return RegisterAnswer{Status: Outdated}
	}
	claim, err := m.put(c, code, now)
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	if !c.Pending {
		m.remember(c.Gallery, c.name(), code, c.Subject.UUID, c.Event.UUID)
	}
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Claim: claim}
}

// put adds the event, pending or not; claim is 0 if not.
func (m *Machine) put(c enrolment, code byte, now int64) (claim uint64, err error) {
	switch further := code == codeAddEvent; {
	case c.Pending && further:
		return m.shard.HoldFurther(c.event(now), c.reuse())
	case c.Pending:
		return m.shard.Hold(c.event(now), c.reuse())
	case further:
		return 0, m.shard.Add(c.event(now), c.reuse())
	default:
		return 0, m.shard.Put(c.event(now), c.reuse())
	}
}

// replayed answers an operation that made an event and was done before.
func (m *Machine) replayed(g id.Gallery, done operation.Outcome) RegisterAnswer {
	a := RegisterAnswer{
		Status:   Replayed,
		Subject:  id.Subject{UUID: done.IDs[0]},
		Event:    id.Event{UUID: done.IDs[1]},
		Time:     done.Time,
		Revision: done.Number,
	}
	a.Sealed, _ = m.shard.Sealed(g, a.Subject, a.Event, a.Revision)
	return a
}

func (c ReplaceEvent) apply(m *Machine) RegisterAnswer {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	done, status := m.once(place{c.Gallery, c.Generation}, name, codeReplaceEvent)
	switch {
	case status == Replayed && (done.IDs[0] != c.Subject.UUID || !c.Oldest && done.IDs[1] != c.Event.UUID):
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	}
	active, err := m.shard.Update(shard.Replacement{
		Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now,
		Tags: c.Tags, KeepTags: c.KeepTags, Sealed: c.Sealed, Revision: c.Revision, Oldest: c.Oldest,
	})
	switch status := statusOf(err); status {
	case Done:
	case Moved:
		return RegisterAnswer{Status: Moved, Subject: c.Subject, Event: active.Event, Revision: active.Revision + 1}
	default:
		return RegisterAnswer{Status: status}
	}
	m.ops.Remember(operation.Outcome{
		Name: name, Kind: codeReplaceEvent, Scope: c.Gallery.UUID,
		IDs: [2][16]byte{c.Subject.UUID, c.Event.UUID}, Number: c.Revision,
	})
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Revision: c.Revision}
}

func (c Unregister) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	return m.remove(removal{place{c.Gallery, c.Generation}, operation.Name{Op: c.Op}, codeUnregister, [2][16]byte{c.Subject.UUID}}, now, func() error {
		return m.shard.Erase(shard.Erasure{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Time: now})
	})
}

func (c RemoveEvent) apply(m *Machine) UnregisterAnswer {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	return m.remove(removal{place{c.Gallery, c.Generation}, name, codeRemoveEvent, [2][16]byte{c.Subject.UUID, c.Event.UUID}}, now, func() error {
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
	further, err := m.shard.Activate(shard.Claimed{
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

func (c Withdraw) apply(m *Machine) WithdrawAnswer {
	m.advance(c.Time)
	err := m.shard.Withdraw(c.Gallery, c.Generation, c.Subject, c.Event)
	return WithdrawAnswer{statusOf(err)}
}
