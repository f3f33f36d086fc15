package fsmtest_test

import (
	"slices"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
)

// galleries is the number of galleries. Clients write to the first ones, up to restored. The
// others come from backups, and clients use them later.
const (
	restored  = 3
	galleries = 6
)

// backup is a backup whose restoration into a shard is in progress.
type backup struct {
	slice   shard.CopiedSlice
	entries []shard.CopiedEntry
	ops     []id.Operation // the operations whose templates the entries have
	have    uint64
	base    uint64
}

// newBackup generates the entries of a shard. Some subjects have several events, and some
// events were replaced or deleted.
func (w *shardWorld) newBackup() {
	n := 2 + w.IntN(10)
	b := &backup{slice: shard.CopiedSlice{
		Gallery: galleryID(restored + w.IntN(galleries-restored)), Granted: uint32(n + 2), Returned: uint32(w.IntN(3)), Epoch: uint32(w.IntN(3)),
	}}
	b.slice.Generation = w.generation(b.slice.Gallery)
	if sl := w.model.slices[b.slice.Gallery]; sl != nil { // meta refuses another backup of an existing gallery
		b.slice.Granted, b.slice.Returned = sl.granted, sl.returned
	}
	sequence, time := uint64(0), w.time-int64(w.IntN(100_000))
	for range n {
		sequence += 1 + uint64(w.IntN(3))
		time += int64(w.IntN(3000))
		w.events++
		e := shard.CopiedEntry{
			Subject: subjectID(w.events), Event: eventID(w.events), Time: time, Sequence: sequence, First: sequence, Deleted: w.IntN(4) == 0,
		}
		op := id.Operation{5, byte(w.events >> 8), byte(w.events)}
		if k := len(b.entries); k > 0 && w.IntN(3) == 0 {
			e.Subject = b.entries[w.IntN(k)].Subject
		}
		if !e.Deleted {
			e.Tags, e.Revision, e.First = w.tags(), uint32(w.IntN(3)), 1+uint64(w.IntN(int(sequence)))
			e.Expires = w.expires()
			e.Sealed = w.seal(op, shard.FaceRef{
				Gallery: b.slice.Gallery, Generation: b.slice.Generation, Subject: e.Subject, Event: e.Event, Revision: e.Revision,
			})
		}
		b.entries, b.ops = append(b.entries, e), append(b.ops, op)
	}
	w.backup = b
}

// load returns a Load of the next entries, a repeated one or a wrong one.
func (w *shardWorld) load() []byte {
	if w.backup == nil || w.backup.have >= uint64(len(w.backup.entries)) || w.IntN(30) == 0 {
		w.newBackup()
		return w.proposeLoad(shardfsm.Load{Slice: w.backup.slice}, nil)
	}
	b := w.backup
	from := int(b.have)
	if w.IntN(6) == 0 { // a retry of earlier entries
		from = w.IntN(from + 1)
	}
	to := min(len(b.entries), from+1+w.IntN(4))
	c := shardfsm.Load{Slice: b.slice, Have: uint64(from), Base: b.base, Entries: slices.Clone(b.entries[from:to])}
	ops := b.ops[from:to]
	last := &c.Entries[len(c.Entries)-1]
	switch w.IntN(24) {
	case 0:
		c.Have++
	case 1:
		if sl := w.model.slices[b.slice.Gallery]; sl != nil && sl.generation == b.slice.Generation {
			c.Slice.Generation++ // the faces are sealed for the right one
		}
	case 2:
		last.Time -= 200_000
	case 3:
		last.Deleted = !last.Deleted
	case 4:
		last.First = last.Sequence + 1
	case 5:
		if from > 0 && w.model.active(b.slice.Gallery, b.entries[from-1].Subject, b.entries[from-1].Event) >= 0 {
			last.Subject, last.Event = b.entries[from-1].Subject, b.entries[from-1].Event
		}
	case 6:
		return w.proposeLoad(shardfsm.Load{Slice: b.slice}, nil) // somebody starts over
	}
	return w.proposeLoad(c, ops)
}

func (w *shardWorld) proposeLoad(c shardfsm.Load, ops []id.Operation) []byte {
	a := w.model.load(c, ops)
	if b := w.backup; b != nil && (a.Status == shardfsm.Done || a.Status == shardfsm.Moved) {
		if len(c.Entries) == 0 && a.Entries == 0 {
			b.base = a.Last
		}
		b.have = a.Entries
	}
	return propose(w, shardfsm.LoadOp, c, a)
}

// load applies a Load.
func (m *shardModel) load(c shardfsm.Load, ops []id.Operation) shardfsm.LoadAnswer {
	if n := len(c.Entries); n > 0 {
		m.advance(c.Entries[n-1].Time)
	}
	g := c.Slice.Gallery
	if m.stale(g, c.Slice.Generation) {
		return shardfsm.LoadAnswer{Status: shardfsm.StaleGeneration}
	}
	sl := m.slice(g, c.Slice.Generation)
	sl.granted, sl.returned = max(sl.granted, c.Slice.Granted), max(sl.returned, c.Slice.Returned)
	sl.epoch = max(sl.epoch, c.Slice.Epoch)
	u := m.usage(g)
	if u.Returned > u.Granted || uint64(u.Active+u.Deleted) != c.Have {
		return m.loaded(g, shardfsm.Moved)
	}
	for i, e := range c.Entries {
		if s := m.loadEntry(g, c.Base, e, ops[i]); s != shardfsm.Done {
			return m.loaded(g, s)
		}
	}
	return m.loaded(g, shardfsm.Done)
}

func (m *shardModel) loadEntry(g id.Gallery, base uint64, e shard.CopiedEntry, op id.Operation) shardfsm.Status {
	last := m.last(g)
	switch {
	case m.usage(g).Free() == 0:
		return shardfsm.NeedSlots
	case e.First == 0 || e.First > e.Sequence || last >= 0 && e.Time < m.events[last].entry.Time,
		e.Deleted != (len(e.Sealed) == 0), e.Deleted && e.Expires != 0, !e.Deleted && m.active(g, e.Subject, e.Event) >= 0:
		return shardfsm.Conflict
	}
	m.sequence = max(m.sequence+1, base+e.Sequence)
	fresh := modelEvent{
		gallery: g, entry: shard.Entry{Subject: e.Subject, Event: e.Event, Time: e.Time, Deleted: e.Deleted},
		tags: e.Tags, first: base + e.First, revision: e.Revision, expires: e.Expires,
	}
	if !e.Deleted {
		fresh.template, fresh.face = m.templates[op], op
	}
	m.events = append(m.events, fresh)
	return shardfsm.Done
}

// last returns the place of a gallery's last entry, or −1.
func (m *shardModel) last(g id.Gallery) int {
	for i, e := range slices.Backward(m.events) {
		if e.gallery == g {
			return i
		}
	}
	return -1
}

func (m *shardModel) loaded(g id.Gallery, s shardfsm.Status) shardfsm.LoadAnswer {
	u := m.usage(g)
	a := shardfsm.LoadAnswer{Status: s, Entries: uint64(u.Active + u.Deleted), Last: m.sequence}
	if last := m.last(g); last >= 0 {
		a.Last = m.events[last].first
	}
	return a
}
