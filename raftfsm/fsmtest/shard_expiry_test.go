package fsmtest_test

import (
	"slices"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
)

// expires returns a time of expiry, or mostly none.
func (w *shardWorld) expires() int64 {
	if w.IntN(3) > 0 {
		return 0
	}
	return w.time + int64(w.IntN(60_000))
}

// expire applies an Expire.
func (m *shardModel) expire(c shardfsm.Expire) shardfsm.ExpireAnswer {
	m.advance(c.Time)
	a := shardfsm.ExpireAnswer{Status: shardfsm.Done}
	for _, s := range c.Slices {
		a.Each = append(a.Each, 0)
		if m.stale(s.Gallery, s.Generation) {
			continue
		}
		for _, named := range s.Events {
			i := m.active(s.Gallery, named.Subject, named.Event)
			if i < 0 {
				continue
			}
			e := m.events[i]
			own := e.expires != 0 && e.expires <= c.Time
			outlived := e.entry.Time <= s.Updated && e.entry.Time <= c.Time-24*3_600_000
			if e.revision == named.Revision && (own || outlived) && !m.isSource(named.Subject) && m.remove(i, shardfsm.Heir(named.Heir)) {
				a.Expired++
				a.Each[len(a.Each)-1]++
			}
		}
	}
	return a
}

// isSource reports whether a merge of the subject is under way.
func (m *shardModel) isSource(s id.Subject) bool {
	i := m.merges.of(s)
	return i >= 0 && m.merges.under[i].Ended == 0
}

// heirOf returns the heir of the note of a subject's first event, mostly the right one.
func (w *shardWorld) heirOf(g id.Gallery, s id.Subject) (h shardfsm.Heir) {
	list := w.model.actives(g, s)
	if len(list) < 2 || w.IntN(8) == 0 {
		return h
	}
	next := w.model.events[list[1]]
	h = shardfsm.Heir{Event: next.entry.Event, Revision: next.revision, Sealed: w.sealed[next.face], Expires: w.expires()}
	h.Note, _ = w.note()
	return h
}

// expire returns an Expire of events that are due or not, and of some that are wrong.
func (w *shardWorld) expire() []byte {
	c := shardfsm.Expire{Time: w.tick()}
	if w.IntN(8) == 0 {
		c.Time -= int64(w.IntN(100_000))
	}
	for range 1 + w.IntN(2) {
		of, _ := w.pick()
		s := shardfsm.ExpireSlice{Gallery: of.gallery, Generation: w.generation(of.gallery)}
		switch w.IntN(4) {
		case 0:
			s.Updated = c.Time - 24*3_600_000
		case 1:
			s.Updated = c.Time - int64(w.IntN(30*3_600_000))
		}
		for _, e := range w.model.events {
			if e.gallery != of.gallery || e.entry.Deleted || w.IntN(3) == 0 {
				continue
			}
			named := shard.Expired{Subject: e.entry.Subject, Event: e.entry.Event, Revision: e.revision}
			if e.note != nil {
				named.Heir = shard.Heir(w.heirOf(e.gallery, e.entry.Subject))
			}
			switch w.IntN(16) {
			case 0:
				named.Revision++
			case 1:
				named.Subject = subjectID(w.IntN(w.events + 1))
			}
			s.Events = append(s.Events, named)
		}
		c.Slices = append(c.Slices, s)
	}
	return propose(w, shardfsm.ExpireOp, c, w.model.expire(c))
}

// compareExpiry compares a machine's times of expiry in a gallery with the model.
func (w *shardWorld) compareExpiry(t *testing.T, replica int, s *shard.Shard, g id.Gallery) {
	t.Helper()
	var want []int64
	due := 0
	for _, e := range w.model.events {
		if e.gallery != g {
			continue
		}
		want = append(want, e.expires)
		if e.expires != 0 && e.expires <= w.model.clock {
			due++
		}
	}
	got := s.ListEvents(g, 0, 1000, shard.Ascending).Expires
	if got == nil {
		got = make([]int64, len(want))
	}
	if !slices.Equal(want, got) {
		t.Fatalf("replica %d: times of expiry are %d, want %d", replica, got, want)
	}
	found := 0
	for _, x := range s.Due(w.model.clock, func(id.Gallery) (int64, bool) { return 0, true }, 1000) {
		if x.Gallery == g {
			found = len(x.Events)
		}
	}
	if found != due {
		t.Fatalf("replica %d: %d events are due, want %d", replica, found, due)
	}
}
