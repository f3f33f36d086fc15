package shardfsm

import (
	"facet/internal/codec"
	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/operation"
	"facet/shard"
)

func (c Register) apply(m *Machine) []byte {
	return codec.Encode(answerOf(headRegister), m.enrol(enrolment(c), headRegister))
}

func (c AddEvent) apply(m *Machine) []byte {
	return codec.Encode(answerOf(headAddEvent), m.enrol(enrolment(c), headAddEvent))
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

func (m *Machine) enrol(c enrolment, kind codec.Head) RegisterAnswer {
	now := m.advance(c.Time)
	done, status := m.once(place{c.Gallery, c.Generation}, c.name(), kind)
	switch {
	case status == Replayed && kind == headAddEvent && done.IDs[0] != c.Subject.UUID:
		return RegisterAnswer{Status: Conflict}
	case status == Replayed:
		return m.replayed(c.Gallery, done)
	case status != 0:
		return RegisterAnswer{Status: status}
	case c.Epoch != 0 && m.shard.Epoch(c.Gallery) > c.Epoch && !mutant.OldEpochEnrols:
		return RegisterAnswer{Status: Outdated}
	}
	claim, err := m.put(c, kind, now)
	if err != nil {
		return RegisterAnswer{Status: statusOf(err)}
	}
	if !c.Pending {
		m.remember(c.Gallery, c.name(), kind, c.Subject.UUID, c.Event.UUID)
	}
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Claim: claim}
}

// put adds the event, pending or not; claim is 0 if not.
func (m *Machine) put(c enrolment, kind codec.Head, now int64) (claim uint64, err error) {
	switch further := kind == headAddEvent; {
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

func (c ReplaceEvent) apply(m *Machine) []byte {
	return codec.Encode(answerOf(headReplaceEvent), m.replace(c))
}

func (m *Machine) replace(c ReplaceEvent) RegisterAnswer {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	done, status := m.once(place{c.Gallery, c.Generation}, name, headReplaceEvent)
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
		Name: name, Kind: headReplaceEvent.Code, Scope: c.Gallery.UUID,
		IDs: [2][16]byte{c.Subject.UUID, c.Event.UUID}, Number: c.Revision,
	})
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now, Revision: c.Revision}
}

func (c Unregister) apply(m *Machine) []byte {
	now := m.advance(c.Time)
	a := m.remove(removal{place{c.Gallery, c.Generation}, operation.Name{Op: c.Op}, headUnregister, [2][16]byte{c.Subject.UUID}}, now, func() error {
		return m.shard.Erase(shard.Erasure{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Time: now})
	})
	return codec.Encode(answerOf(headUnregister), a)
}

func (c RemoveEvent) apply(m *Machine) []byte {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	a := m.remove(removal{place{c.Gallery, c.Generation}, name, headRemoveEvent, [2][16]byte{c.Subject.UUID, c.Event.UUID}}, now, func() error {
		return m.shard.Remove(shard.Removal{Gallery: c.Gallery, Generation: c.Generation, Subject: c.Subject, Event: c.Event, Time: now})
	})
	return codec.Encode(answerOf(headRemoveEvent), a)
}

// removal names an operation that removes ids.
type removal struct {
	place
	name operation.Name
	kind codec.Head
	ids  [2][16]byte
}

// remove carries out a removal once.
func (m *Machine) remove(r removal, now int64, effect func() error) UnregisterAnswer {
	done, status := m.once(r.place, r.name, r.kind)
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
	m.remember(r.gallery, r.name, r.kind, r.ids[0], r.ids[1])
	return UnregisterAnswer{Status: Done, Time: now}
}

func (c Activate) apply(m *Machine) []byte {
	return codec.Encode(answerOf(headActivate), m.activate(c))
}

func (m *Machine) activate(c Activate) RegisterAnswer {
	now := m.advance(c.Time)
	name := operation.Name{Op: c.Op, Request: c.Request, Keyed: c.Keyed}
	done, status := m.once(place{c.Gallery, c.Generation}, name, headRegister, headAddEvent)
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
	kind := headRegister
	if further {
		kind = headAddEvent
	}
	m.remember(c.Gallery, name, kind, c.Subject.UUID, c.Event.UUID)
	return RegisterAnswer{Status: Done, Subject: c.Subject, Event: c.Event, Time: now}
}

func (c Withdraw) apply(m *Machine) []byte {
	m.advance(c.Time)
	err := m.shard.Withdraw(c.Gallery, c.Generation, c.Subject, c.Event)
	return codec.Encode(answerOf(headWithdraw), WithdrawAnswer{statusOf(err)})
}
