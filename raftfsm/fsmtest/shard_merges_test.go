package fsmtest_test

import (
	"maps"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/merging"
)

// modelMark says that a subject receives the events of another.
type modelMark struct {
	gallery        id.Gallery
	generation     uint32
	target, source id.Subject
}

// modelMerges are the merges and marks of the model, in the order in which they came.
type modelMerges struct {
	under  []merging.Merge
	marks  []modelMark
	copied map[id.Shard]uint64
}

func (x *modelMerges) of(source id.Subject) int {
	return slices.IndexFunc(x.under, func(u merging.Merge) bool { return u.Source == source })
}

func (x *modelMerges) isTarget(s id.Subject) bool {
	return slices.ContainsFunc(x.marks, func(m modelMark) bool { return m.target == s })
}

func (x *modelMerges) receive(c shardfsm.Register) shardfsm.Status {
	m := modelMark{c.Gallery, c.Generation, c.Subject, c.Source}
	same := func(o modelMark) bool { return o.target == m.target && o.source == m.source }
	switch {
	case c.Source.IsZero() || slices.ContainsFunc(x.marks, same):
	case x.of(c.Subject) >= 0 && x.under[x.of(c.Subject)].Ended == 0:
		return shardfsm.Merging
	default:
		x.marks = append(x.marks, m)
	}
	return shardfsm.Done
}

func (x *modelMerges) fence(g id.Gallery, generation uint32) {
	x.under = slices.DeleteFunc(x.under, func(u merging.Merge) bool { return u.Gallery == g && u.Generation < generation })
	x.marks = slices.DeleteFunc(x.marks, func(m modelMark) bool { return m.gallery == g && m.generation < generation })
}

func (m *shardModel) beginMerge(c shardfsm.BeginMerge, index uint64) shardfsm.Status {
	m.advance(c.Time)
	x := &m.merges
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.StaleGeneration
	}
	if o, ok := m.find(c.Op); ok {
		if o.kind == "merge" && o.gallery == c.Gallery && o.request == c.Request && o.subject == c.Subject && o.event.UUID == c.Target.UUID {
			return shardfsm.Replayed
		}
		return shardfsm.Conflict
	}
	i := x.of(c.Subject)
	switch {
	case m.over(c.Share, c.Keyed):
		return shardfsm.OverWrites
	case c.Subject == c.Target:
		return shardfsm.Merging
	case len(m.actives(c.Gallery, c.Subject)) == 0:
		return shardfsm.UnknownSubject
	case i >= 0 && x.under[i].Target == c.Target && x.under[i].Ended == 0:
		return shardfsm.Done
	case i >= 0 && (x.under[i].Ended == 0 || x.under[i].Refused == 0) || x.isTarget(c.Subject):
		return shardfsm.Merging
	}
	if i >= 0 {
		x.under = slices.Delete(x.under, i, i+1)
	}
	x.under = append(x.under, merging.Merge{
		Gallery: c.Gallery, Generation: c.Generation, Source: c.Subject, Target: c.Target,
		Op: c.Op, Request: c.Request, Keyed: c.Keyed, Tenant: c.Share.Tenant, Number: index,
	})
	return shardfsm.Done
}

func (m *shardModel) endMerge(c shardfsm.EndMerge) shardfsm.Status {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.StaleGeneration
	}
	i := m.merges.of(c.Source)
	if i < 0 || m.merges.under[i].Ended != 0 || m.merges.under[i].Refused != 0 {
		return shardfsm.Done
	}
	if has := m.faces(c.Gallery, c.Source); len(has) > 0 && !sameFaces(has, c.Faces) {
		return shardfsm.Moved
	}
	for {
		of := m.actives(c.Gallery, c.Source)
		if len(of) == 0 {
			break
		}
		m.delete(of[0])
	}
	u := &m.merges.under[i]
	u.Ended = m.clock
	if c.Copied > 0 {
		m.merges.copied[u.Target.Shard()] = max(m.merges.copied[u.Target.Shard()], c.Copied)
	}
	if _, known := m.find(u.Op); !known {
		m.ops = append(m.ops, modelOp{"merge", c.Gallery, u.Op, u.Request, u.Keyed, m.clock, u.Source, id.Event{UUID: u.Target.UUID}, 0, u.Tenant})
	}
	return shardfsm.Done
}

// faces returns a subject's faces in order of registration.
func (m *shardModel) faces(g id.Gallery, s id.Subject) (faces []shard.FaceID) {
	for _, i := range m.actives(g, s) {
		faces = append(faces, shard.FaceID{Event: m.events[i].entry.Event, Revision: m.events[i].revision})
	}
	return faces
}

// sameFaces reports whether two lists have the same faces, in any order.
func sameFaces(a, b []shard.FaceID) bool {
	has := func(list []shard.FaceID) func(shard.FaceID) bool {
		return func(f shard.FaceID) bool { return !slices.Contains(list, f) }
	}
	return !slices.ContainsFunc(a, has(b)) && !slices.ContainsFunc(b, has(a))
}

// merging returns a command of a merge. Copies are AddEvents with a Source.
func (w *shardWorld) merging() []byte {
	x := &w.model.merges
	answer := func(s shardfsm.Status) shardfsm.StatusAnswer { return shardfsm.StatusAnswer{Status: s} }
	var of merging.Merge
	if len(x.under) > 0 {
		of = x.under[w.IntN(len(x.under))]
	}
	switch n := w.IntN(8); {
	case n < 4 || len(x.under) == 0:
		from, _ := w.pick()
		c := shardfsm.BeginMerge{
			EventWrite: shardfsm.EventWrite{
				Gallery: from.gallery, Generation: w.generation(from.gallery), Op: id.Operation{5, byte(w.IntN(40))}, Request: [16]byte{byte(w.IntN(2))},
				Keyed: w.IntN(2) == 0, Subject: from.entry.Subject, Time: w.tick(), Share: w.share(),
			},
			Target: subjectID(1 + w.IntN(w.events+1)),
		}
		if len(x.under) > 0 && w.IntN(3) == 0 {
			c.Subject, c.Target = of.Source, of.Target
		}
		return propose(w, shardfsm.BeginMergeOp, c, answer(w.model.beginMerge(c, uint64(len(w.check)+1))))
	case n < 6:
		c := shardfsm.EndMerge{
			Gallery: of.Gallery, Generation: w.generation(of.Gallery), Source: of.Source, Time: w.tick(), Faces: w.model.faces(of.Gallery, of.Source),
			Copied: uint64(w.IntN(9)),
		}
		slices.Reverse(c.Faces)
		switch w.IntN(6) {
		case 0:
			c.Faces = append(c.Faces, shard.FaceID{Event: eventID(1), Revision: 3})
		case 1:
			c.Faces = nil
		}
		return propose(w, shardfsm.EndMergeOp, c, answer(w.model.endMerge(c)))
	case n == 6 && len(x.marks) > 0:
		i := w.IntN(len(x.marks))
		c := shardfsm.StopReceiving{Target: x.marks[i].target, Source: x.marks[i].source}
		x.marks = slices.Delete(x.marks, i, i+1)
		return propose(w, shardfsm.StopReceivingOp, c, answer(shardfsm.Done))
	case n == 7 && w.IntN(2) == 0:
		c := shardfsm.GiveUpMerge{Source: of.Source, Time: w.tick(), Why: merging.NoSlot, Undone: w.IntN(2) == 0}
		w.model.advance(c.Time)
		if u := &x.under[x.of(of.Source)]; u.Ended == 0 {
			if u.Refused = c.Why; c.Undone {
				u.Ended = w.model.clock
			}
		}
		return propose(w, shardfsm.GiveUpMergeOp, c, answer(shardfsm.Done))
	default:
		c := shardfsm.ForgetMerge{Source: of.Source}
		x.under = slices.DeleteFunc(x.under, func(u merging.Merge) bool { return u.Source == of.Source })
		return propose(w, shardfsm.ForgetMergeOp, c, answer(shardfsm.Done))
	}
}

// compareMerges compares a machine's merges and marks with the model.
func (w *shardWorld) compareMerges(t *testing.T, replica int, b *merging.Book) {
	t.Helper()
	x := w.model.merges
	if got := b.List(); len(got) != len(x.under) {
		t.Fatalf("replica %d: %d merges, want %d", replica, len(got), len(x.under))
	}
	for _, want := range x.under {
		if got, ok := b.Of(want.Source); !ok || got != want {
			t.Fatalf("replica %d: merge %+v, want %+v", replica, got, want)
		}
	}
	if got := b.Copied(); !maps.Equal(got, x.copied) {
		t.Fatalf("replica %d: copies lie at %v, want %v", replica, got, x.copied)
	}
	for n := range w.events + 2 {
		s := subjectID(n)
		if want := x.isTarget(s); b.Receives(s) != want {
			t.Fatalf("replica %d: subject %d receives: %v, want %v", replica, n, b.Receives(s), want)
		}
	}
}
