package fsmtest_test

import (
	"slices"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
)

// replayed answers a remembered operation.
func (m *shardModel) replayed(o modelOp) shardfsm.RegisterAnswer {
	return shardfsm.RegisterAnswer{
		Status: shardfsm.Replayed, Subject: o.subject, Event: o.event, Time: o.time, Revision: o.revision,
	}
}

// enrol applies a Register (kind "register") or an AddEvent (kind "add").
func (m *shardModel) enrol(kind string, c shardfsm.Register) shardfsm.RegisterAnswer {
	m.advance(c.Time)
	g, refuse := c.Gallery, func(s shardfsm.Status) shardfsm.RegisterAnswer { return shardfsm.RegisterAnswer{Status: s} }
	if m.stale(g, c.Generation) {
		return refuse(shardfsm.StaleGeneration)
	}
	if o, ok := m.find(c.Op); ok {
		if o.refuses(c.EventWrite) {
			return shardfsm.RegisterAnswer{Status: shardfsm.Refused, Subject: o.subject}
		}
		if o.kind != kind || o.gallery != g || o.request != c.Request || kind == "add" && o.subject != c.Subject {
			return refuse(shardfsm.Conflict)
		}
		return m.replayed(o)
	}
	if m.over(c.Share, c.Keyed) {
		return refuse(shardfsm.OverWrites)
	}
	if m.externals.barred(c.Subject, c.Claimed) {
		return refuse(shardfsm.Barred)
	}
	if s := m.merges.receive(c); s != shardfsm.Done {
		return refuse(s)
	}
	known := len(m.actives(g, c.Subject)) > 0
	switch {
	case kind == "add" && !known:
		return refuse(shardfsm.UnknownSubject)
	case m.slices[g] == nil:
		return refuse(shardfsm.NeedSlots)
	case kind == "register" && known, m.active(g, c.Subject, c.Event) >= 0:
		return refuse(shardfsm.Conflict)
	}
	fresh := modelClaim{
		gallery: g, subject: c.Subject, event: c.Event, op: c.Op, request: c.Request, time: m.clock,
		tags: c.Tags, template: m.templates[c.Op], further: kind == "add", note: c.Note, expires: c.Expires,
	}
	if i := m.claim(g, c.Event); i >= 0 {
		own := m.claims[i]
		if own.subject != c.Subject || own.op != c.Op || own.request != c.Request {
			return refuse(shardfsm.Conflict)
		}
		fresh.number = own.number
		m.claims = append(m.claims[:i:i], m.claims[i+1:]...)
	} else if m.usage(g).Free() == 0 && (!c.Recycle || !m.recycle(g)) {
		return refuse(shardfsm.NeedSlots)
	}
	a := shardfsm.RegisterAnswer{Status: shardfsm.Done, Subject: c.Subject, Event: c.Event, Time: m.clock}
	if !c.Pending {
		m.enrolled(fresh)
		m.ops = append(m.ops, modelOp{kind, g, c.Op, c.Request, c.Keyed, m.clock, c.Subject, c.Event, 0, c.Share.Tenant})
		return a
	}
	if n := m.next(); fresh.number == 0 {
		fresh.number = n
	}
	m.claims = append(m.claims, fresh)
	a.Claim = fresh.number
	return a
}

func (m *shardModel) replace(c shardfsm.ReplaceEvent) shardfsm.RegisterAnswer {
	m.advance(c.Time)
	g, refuse := c.Gallery, func(s shardfsm.Status) shardfsm.RegisterAnswer { return shardfsm.RegisterAnswer{Status: s} }
	if m.stale(g, c.Generation) {
		return refuse(shardfsm.StaleGeneration)
	}
	if o, ok := m.find(c.Op); ok {
		if o.refuses(c.EventWrite) {
			return shardfsm.RegisterAnswer{Status: shardfsm.Refused, Subject: o.subject}
		}
		if o.kind != "replace" || o.gallery != g || o.request != c.Request || o.subject != c.Subject || !c.Oldest && o.event != c.Event {
			return refuse(shardfsm.Conflict)
		}
		return m.replayed(o)
	}
	if m.over(c.Share, c.Keyed) {
		return refuse(shardfsm.OverWrites)
	}
	if m.externals.barred(c.Subject, c.Claimed) {
		return refuse(shardfsm.Barred)
	}
	of, i := m.actives(g, c.Subject), m.active(g, c.Subject, c.Event)
	if len(of) == 0 {
		return refuse(shardfsm.UnknownSubject)
	}
	if c.Oldest && i != of[0] {
		i = of[0]
	}
	if i < 0 {
		return refuse(shardfsm.UnknownEvent)
	}
	old := m.events[i]
	noted := (len(old.note) > 0) == c.Noted && (len(c.Note) == 0 || i == of[0])
	if old.entry.Event != c.Event || old.revision+1 != c.Revision || !noted {
		return shardfsm.RegisterAnswer{
			Status: shardfsm.Moved, Subject: c.Subject, Event: old.entry.Event, Revision: old.revision + 1,
		}
	}
	spare := m.usage(g).Free() > 0 || m.recycle(g)
	i = m.active(g, c.Subject, c.Event)
	fresh := old
	fresh.template, fresh.revision, fresh.note, fresh.face = m.templates[c.Op], c.Revision, c.Note, c.Op
	if !c.KeepTags {
		fresh.tags = c.Tags
	}
	if c.Expires != 0 || c.NoExpiry {
		fresh.expires = c.Expires
	}
	m.delete(i)
	if !spare {
		m.events = m.events[:len(m.events)-1]
		m.sequence--
	}
	m.enter(fresh)
	m.ops = append(m.ops, modelOp{"replace", g, c.Op, c.Request, c.Keyed, m.clock, c.Subject, c.Event, c.Revision, c.Share.Tenant})
	return shardfsm.RegisterAnswer{
		Status: shardfsm.Done, Subject: c.Subject, Event: c.Event, Time: m.clock, Revision: c.Revision,
	}
}

func (m *shardModel) unregister(c shardfsm.Unregister) shardfsm.UnregisterAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.StaleGeneration}
	}
	if o, ok := m.find(c.Op); ok {
		if o.kind != "unregister" || o.gallery != c.Gallery || o.subject != c.Subject {
			return shardfsm.UnregisterAnswer{Status: shardfsm.Conflict}
		}
		return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: o.time}
	}
	if m.over(c.Share, false) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.OverWrites}
	}
	if m.isSource(c.Subject) || m.merges.isTarget(c.Subject) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.Merging}
	}
	if len(m.actives(c.Gallery, c.Subject)) == 0 {
		return shardfsm.UnregisterAnswer{Status: shardfsm.UnknownSubject}
	}
	for {
		of := m.actives(c.Gallery, c.Subject)
		if len(of) == 0 {
			break
		}
		m.delete(of[0])
	}
	m.ops = append(m.ops, modelOp{"unregister", c.Gallery, c.Op, [16]byte{}, false, m.clock, c.Subject, id.Event{}, 0, c.Share.Tenant})
	return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: m.clock}
}

func (m *shardModel) removeEvent(c shardfsm.RemoveEvent) shardfsm.UnregisterAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.StaleGeneration}
	}
	if o, ok := m.find(c.Op); ok {
		if o.kind != "remove" || o.gallery != c.Gallery || o.request != c.Request || o.subject != c.Subject || o.event != c.Event {
			return shardfsm.UnregisterAnswer{Status: shardfsm.Conflict}
		}
		return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: o.time}
	}
	if m.over(c.Share, c.Keyed) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.OverWrites}
	}
	if m.isSource(c.Subject) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.Merging}
	}
	if len(m.actives(c.Gallery, c.Subject)) == 0 {
		return shardfsm.UnregisterAnswer{Status: shardfsm.UnknownSubject}
	}
	i := m.active(c.Gallery, c.Subject, c.Event)
	if i < 0 {
		return shardfsm.UnregisterAnswer{Status: shardfsm.UnknownEvent}
	}
	if !m.remove(i, c.Heir) {
		return shardfsm.UnregisterAnswer{Status: shardfsm.Moved}
	}
	m.ops = append(m.ops, modelOp{"remove", c.Gallery, c.Op, c.Request, c.Keyed, m.clock, c.Subject, c.Event, 0, c.Share.Tenant})
	return shardfsm.UnregisterAnswer{Status: shardfsm.Done, Time: m.clock}
}

func (m *shardModel) activate(c shardfsm.Activate) shardfsm.RegisterAnswer {
	m.advance(c.Time)
	g, refuse := c.Gallery, func(s shardfsm.Status) shardfsm.RegisterAnswer { return shardfsm.RegisterAnswer{Status: s} }
	if m.stale(g, c.Generation) {
		return refuse(shardfsm.StaleGeneration)
	}
	if o, ok := m.find(c.Op); ok {
		if o.refuses(c.EventWrite) {
			return shardfsm.RegisterAnswer{Status: shardfsm.Refused, Subject: o.subject}
		}
		made := o.kind == "register" || o.kind == "add"
		if !made || o.gallery != g || o.request != c.Request || o.subject != c.Subject || o.event != c.Event {
			return refuse(shardfsm.Conflict)
		}
		return m.replayed(o)
	}
	if m.over(c.Share, c.Keyed) {
		return refuse(shardfsm.OverWrites)
	}
	i := m.claim(g, c.Event)
	if i < 0 {
		return refuse(shardfsm.UnknownEvent)
	}
	own := m.claims[i]
	switch {
	case own.subject != c.Subject || own.op != c.Op || own.request != c.Request:
		return refuse(shardfsm.Conflict)
	case own.number != c.Claim:
		return refuse(shardfsm.UnknownEvent)
	}
	m.claims = append(m.claims[:i:i], m.claims[i+1:]...)
	known := len(m.actives(g, c.Subject)) > 0
	switch {
	case own.further && !known:
		return refuse(shardfsm.UnknownSubject)
	case !own.further && known:
		return refuse(shardfsm.Conflict)
	}
	kind := "register"
	if own.further {
		kind = "add"
	}
	m.enrolled(own)
	m.ops = append(m.ops, modelOp{kind, g, c.Op, c.Request, c.Keyed, m.clock, c.Subject, c.Event, 0, c.Share.Tenant})
	return shardfsm.RegisterAnswer{Status: shardfsm.Done, Subject: c.Subject, Event: c.Event, Time: m.clock}
}

func (m *shardModel) withdraw(c shardfsm.Withdraw) shardfsm.StatusAnswer {
	m.advance(c.Time)
	switch {
	case m.stale(c.Gallery, c.Generation):
		return shardfsm.StatusAnswer{Status: shardfsm.StaleGeneration}
	case m.active(c.Gallery, c.Subject, c.Event) >= 0:
		return shardfsm.StatusAnswer{Status: shardfsm.Activated}
	}
	if i := m.claim(c.Gallery, c.Event); i >= 0 && m.claims[i].subject == c.Subject {
		m.claims = append(m.claims[:i:i], m.claims[i+1:]...)
	}
	return shardfsm.StatusAnswer{Status: shardfsm.Done}
}

// remove turns the i-th event into a deleted entry, unless its note goes to another than the heir.
func (m *shardModel) remove(i int, h shardfsm.Heir) bool {
	g, subject := m.events[i].gallery, m.events[i].entry.Subject
	heir := -1
	of := m.actives(g, subject)
	if after := slices.Index(of, i) + 1; len(m.events[i].note) > 0 && after < len(of) {
		heir = of[after]
		if e := m.events[heir]; e.entry.Event != h.Event || e.revision != h.Revision || len(h.Note) == 0 {
			return false
		}
	}
	m.delete(i)
	if heir >= 0 {
		heir = m.active(g, subject, h.Event)
		fresh := m.events[heir]
		fresh.note, fresh.expires = h.Note, h.Expires
		m.events = slices.Delete(m.events, heir, heir+1)
		m.enter(fresh)
	}
	return true
}
