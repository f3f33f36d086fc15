package fsmtest_test

import (
	"bytes"
	"cmp"
	"slices"

	"facet/engine/score"
	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/claim"
)

// modelEvent is an event of the model, which keeps all events in log order.
type modelEvent struct {
	gallery  id.Gallery
	entry    shard.Entry
	tags     []uint32
	template []float32
	first    uint64 // orders the events of a subject by registration
	revision uint32
	note     []byte
	face     id.Operation // that encrypted the face
	expires  int64
}

// modelClaim is a pending event.
type modelClaim struct {
	number   uint64
	gallery  id.Gallery
	subject  id.Subject
	event    id.Event
	op       id.Operation
	request  [16]byte
	time     int64
	tags     []uint32
	template []float32
	further  bool
	note     []byte
	expires  int64
}

type modelOp struct {
	kind     string
	gallery  id.Gallery
	op       id.Operation
	request  [16]byte
	keyed    bool
	time     int64
	subject  id.Subject
	event    id.Event
	revision uint32
	owner    id.Tenant
}

// modelSlice is the model's record of a gallery without its events.
type modelSlice struct {
	generation, epoch, granted, returned uint32
}

// shardModel is a shard implemented with plain lists.
type shardModel struct {
	clock    int64
	sequence uint64 // counts entries, claims and fences
	slices   map[id.Gallery]*modelSlice
	floor    map[id.Gallery]uint32
	remains  map[id.Gallery]uint64
	events   []modelEvent
	claims   []modelClaim
	ops      []modelOp
	// templates maps operations to the templates that the generator encrypted.
	templates map[id.Operation][]float32
	externals modelExternals
	merges    modelMerges
}

func newShardModel() *shardModel {
	return &shardModel{
		slices: map[id.Gallery]*modelSlice{}, floor: map[id.Gallery]uint32{}, remains: map[id.Gallery]uint64{},
		templates: map[id.Operation][]float32{}, externals: modelExternals{held: map[externalOf]claim.Holder{}},
		merges: modelMerges{copied: map[id.Shard]uint64{}},
	}
}

func (m *shardModel) usage(g id.Gallery) (u shard.Usage) {
	if sl := m.slices[g]; sl != nil {
		u.Granted, u.Returned = sl.granted, sl.returned
	}
	for _, e := range m.events {
		switch {
		case e.gallery != g:
		case e.entry.Deleted:
			u.Deleted++
		default:
			u.Active++
		}
	}
	for _, c := range m.claims {
		if c.gallery == g {
			u.Pending++
		}
	}
	return u
}

func (m *shardModel) advance(time int64) {
	m.clock = max(m.clock, time)
	m.ops = slices.DeleteFunc(m.ops, func(o modelOp) bool {
		keep := int64(10 * 60_000)
		if o.keyed {
			keep = 24 * 3_600_000
		}
		return o.time+keep < m.clock
	})
	m.claims = slices.DeleteFunc(m.claims, func(c modelClaim) bool { return c.time+30_000 <= m.clock })
}

func (m *shardModel) stale(g id.Gallery, generation uint32) bool {
	sl := m.slices[g]
	return generation < m.floor[g] || sl != nil && sl.generation != generation
}

func (m *shardModel) find(op id.Operation) (modelOp, bool) {
	i := slices.IndexFunc(m.ops, func(o modelOp) bool { return o.op == op })
	if i < 0 {
		return modelOp{}, false
	}
	return m.ops[i], true
}

// over reports whether a tenant has used up its share.
func (m *shardModel) over(s shardfsm.Share, keyed bool) bool {
	return !s.Tenant.IsZero() && m.taken(s.Tenant, keyed) >= s.Writes
}

// taken counts the remembered operations of a tenant of one kind.
func (m *shardModel) taken(t id.Tenant, keyed bool) (n uint32) {
	for _, o := range m.ops {
		if o.owner == t && o.keyed == keyed {
			n++
		}
	}
	return n
}

// actives returns the places of a subject's active events in order of registration.
func (m *shardModel) actives(g id.Gallery, s id.Subject) (places []int) {
	for i, e := range m.events {
		if e.gallery == g && e.entry.Subject == s && !e.entry.Deleted {
			places = append(places, i)
		}
	}
	slices.SortFunc(places, func(a, b int) int { return cmp.Compare(m.events[a].first, m.events[b].first) })
	return places
}

func (m *shardModel) active(g id.Gallery, s id.Subject, e id.Event) int {
	for _, i := range m.actives(g, s) {
		if m.events[i].entry.Event == e {
			return i
		}
	}
	return -1
}

func (m *shardModel) claim(g id.Gallery, e id.Event) int {
	return slices.IndexFunc(m.claims, func(c modelClaim) bool { return c.gallery == g && c.event == e })
}

func (m *shardModel) recycle(g id.Gallery) bool {
	i := slices.IndexFunc(m.events, func(e modelEvent) bool { return e.gallery == g && e.entry.Deleted })
	if i >= 0 {
		m.events = slices.Delete(m.events, i, i+1)
	}
	return i >= 0
}

func (m *shardModel) next() uint64 { m.sequence++; return m.sequence }

// enter appends an event.
func (m *shardModel) enter(e modelEvent) {
	n := m.next()
	if e.first == 0 {
		e.first = n
	}
	e.entry.Time = m.clock
	m.events = append(m.events, e)
}

func (m *shardModel) enrolled(c modelClaim) {
	m.enter(modelEvent{
		gallery: c.gallery, entry: shard.Entry{Subject: c.subject, Event: c.event},
		tags: c.tags, template: c.template, note: c.note, face: c.op, expires: c.expires,
	})
}

// delete turns the i-th event into a deleted entry.
func (m *shardModel) delete(i int) {
	gone := m.events[i]
	gone.entry.Deleted = true
	gone.tags, gone.template, gone.revision, gone.first, gone.note = nil, nil, 0, 0, nil
	gone.expires = 0
	m.events = slices.Delete(m.events, i, i+1)
	m.enter(gone)
}

func (m *shardModel) grant(c shardfsm.Grant) shardfsm.StatusAnswer {
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.StatusAnswer{Status: shardfsm.StaleGeneration}
	}
	sl := m.slice(c.Gallery, c.Generation)
	sl.granted = max(sl.granted, c.Total)
	return shardfsm.StatusAnswer{Status: shardfsm.Done}
}

func (m *shardModel) slice(g id.Gallery, generation uint32) *modelSlice {
	if m.slices[g] == nil {
		m.slices[g] = &modelSlice{generation: generation}
	}
	return m.slices[g]
}

func (m *shardModel) widen(c shardfsm.Widen) shardfsm.StatusAnswer {
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.StatusAnswer{Status: shardfsm.StaleGeneration}
	}
	sl := m.slice(c.Gallery, c.Generation)
	sl.epoch = max(sl.epoch, c.Epoch)
	return shardfsm.StatusAnswer{Status: shardfsm.Done}
}

func (m *shardModel) returnSlots(c shardfsm.ReturnSlots) shardfsm.ReturnSlotsAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.ReturnSlotsAnswer{Status: shardfsm.StaleGeneration}
	}
	if c.Granted > 0 {
		m.grant(shardfsm.Grant{Gallery: c.Gallery, Generation: c.Generation, Total: c.Granted})
	}
	if sl := m.slices[c.Gallery]; sl != nil && sl.returned == c.Returned {
		before := m.usage(c.Gallery).Free()
		for n := uint32(0); n < before && (before-n > c.Keep || n < c.Recycle); n++ {
			sl.returned++
		}
		for sl.returned < c.Returned+c.Recycle && m.recycle(c.Gallery) {
			sl.returned++
		}
	}
	u := m.usage(c.Gallery)
	return shardfsm.ReturnSlotsAnswer{
		Status: shardfsm.Done, Granted: u.Granted, Returned: u.Returned, Deleted: u.Deleted, Active: u.Active, Pending: u.Pending,
	}
}

func (m *shardModel) fence(c shardfsm.Fence) shardfsm.FenceAnswer {
	g := c.Gallery
	if floor, ok := m.floor[g]; ok && floor >= c.Generation {
		m.externals.fence(g, c.Generation)
		m.merges.fence(g, c.Generation)
		return shardfsm.FenceAnswer{Status: shardfsm.Done, Left: m.remains[g]}
	}
	m.next()
	m.externals.fence(g, c.Generation)
	m.merges.fence(g, c.Generation)
	m.floor[g], m.remains[g] = c.Generation, 0
	if sl := m.slices[g]; sl != nil && sl.generation < c.Generation {
		u := m.usage(g)
		m.remains[g] = uint64(u.Active + u.Deleted)
		delete(m.slices, g)
		m.events = slices.DeleteFunc(m.events, func(e modelEvent) bool { return e.gallery == g })
		m.claims = slices.DeleteFunc(m.claims, func(c modelClaim) bool { return c.gallery == g })
	}
	return shardfsm.FenceAnswer{Status: shardfsm.Done, Left: m.remains[g]}
}

func (m *shardModel) purge(c shardfsm.Purge) shardfsm.FenceAnswer {
	floor, ok := m.floor[c.Gallery]
	if !ok || floor < c.Generation {
		return shardfsm.FenceAnswer{Status: shardfsm.NotFenced}
	}
	m.remains[c.Gallery] -= min(m.remains[c.Gallery], uint64(c.Max))
	return shardfsm.FenceAnswer{Status: shardfsm.Done, Left: m.remains[c.Gallery]}
}

func (m *shardModel) list(g id.Gallery) []shard.Entry {
	var out []shard.Entry
	for _, e := range m.events {
		if e.gallery == g {
			out = append(out, e.entry)
		}
	}
	return out
}

// candidate is an event that a search compares.
type candidate struct {
	hit      shard.Hit
	tags     []uint32
	template []float32
}

func (m *shardModel) candidates(g id.Gallery) (out []candidate) {
	for _, e := range m.events {
		if e.gallery == g && !e.entry.Deleted {
			out = append(out, candidate{shard.Hit{Subject: e.entry.Subject, Event: e.entry.Event}, e.tags, e.template})
		}
	}
	return out
}

func (m *shardModel) pending(g id.Gallery) (out []candidate) {
	for _, c := range m.claims {
		if c.gallery == g {
			out = append(out, candidate{shard.Hit{Subject: c.subject, Event: c.event}, c.tags, c.template})
		}
	}
	return out
}

// search sorts all candidates and returns the best.
func search(among []candidate, q shard.Query) []shard.Hit {
	var all []shard.Hit
	for _, c := range among {
		tagged := len(q.Tags) == 0
		for _, tag := range q.Tags {
			tagged = tagged || slices.Contains(c.tags, tag)
		}
		if s := table.Score(score.Dot(q.Probe, c.template)); tagged && s >= q.Threshold {
			c.hit.Score = s
			all = append(all, c.hit)
		}
	}
	slices.SortFunc(all, func(a, b shard.Hit) int {
		switch {
		case a.Score != b.Score:
			return b.Score - a.Score
		case a.Subject != b.Subject:
			return bytes.Compare(a.Subject.UUID[:], b.Subject.UUID[:])
		default:
			return bytes.Compare(a.Event.UUID[:], b.Event.UUID[:])
		}
	})
	return all[:min(len(all), q.Limit)]
}
