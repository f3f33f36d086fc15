package fsmtest_test

import (
	"slices"
	"testing"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/shard"
	"facet/shard/claim"
)

// externalOf names the claim to an external id.
type externalOf struct {
	gallery id.Gallery
	name    shard.ExternalName
}

// modelExternals are the claims and bars of the model. A gallery's claims are of one generation,
// because a later one comes after a fence.
type modelExternals struct {
	held  map[externalOf]claim.Holder
	bars  []id.Subject
	turns uint16
	of    map[id.Gallery]uint32 // the generation of the claims
}

func (m *modelExternals) fence(g id.Gallery, generation uint32) {
	if m.of[g] >= generation {
		return
	}
	for at := range m.held {
		if at.gallery == g {
			delete(m.held, at)
		}
	}
}

func (m *modelExternals) barred(s id.Subject, claimed uint64) bool {
	if claimed == 0 {
		return false
	}
	return claimed-1 > uint64(len(m.bars)) || slices.Contains(m.bars[claimed-1:], s)
}

func (m *shardModel) claimExternal(c shardfsm.Claim) shardfsm.ClaimAnswer {
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.ClaimAnswer{Status: shardfsm.StaleGeneration}
	}
	x := &m.externals
	if x.of == nil {
		x.of = map[id.Gallery]uint32{}
	}
	for at := range x.held {
		if at.gallery == c.Gallery && x.of[c.Gallery] > c.Generation {
			return shardfsm.ClaimAnswer{Status: shardfsm.StaleGeneration}
		}
	}
	x.fence(c.Gallery, c.Generation)
	x.of[c.Gallery] = c.Generation
	a := shardfsm.ClaimAnswer{Status: shardfsm.Done}
	for _, change := range c.Changes {
		at := externalOf{c.Gallery, change.Name}
		held, taken := x.held[at]
		if !taken || held.Subject == change.Subject || held == change.From {
			delete(x.held, at)
			held = claim.Holder{}
			if !change.Subject.IsZero() {
				x.turns++
				held = claim.Holder{Subject: change.Subject, Turn: x.turns}
				x.held[at] = held
			}
		}
		a.Holders = append(a.Holders, held)
	}
	return a
}

func (m *shardModel) bar(c shardfsm.Bar) shardfsm.StatusAnswer {
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.StatusAnswer{Status: shardfsm.StaleGeneration}
	}
	m.externals.bars = append(m.externals.bars, c.Subject)
	m.claims = slices.DeleteFunc(m.claims, func(p modelClaim) bool { return p.gallery == c.Gallery && p.subject == c.Subject })
	return shardfsm.StatusAnswer{Status: shardfsm.Done}
}

// refuses reports whether the operation of a write was refused.
func (o modelOp) refuses(w shardfsm.EventWrite) bool {
	return o.kind == "refuse" && o.gallery == w.Gallery && o.request == w.Request
}

func (m *shardModel) refuse(c shardfsm.Refuse) shardfsm.RegisterAnswer {
	m.advance(c.Time)
	if m.stale(c.Gallery, c.Generation) {
		return shardfsm.RegisterAnswer{Status: shardfsm.StaleGeneration}
	}
	o, ok := m.find(c.Op)
	switch {
	case ok && o.refuses(c.EventWrite):
		return shardfsm.RegisterAnswer{Status: shardfsm.Refused, Subject: o.subject}
	case ok && (o.kind == "register" || o.kind == "replace") && o.gallery == c.Gallery && o.request == c.Request:
		return shardfsm.RegisterAnswer{Status: shardfsm.Replayed}
	case ok:
		return shardfsm.RegisterAnswer{Status: shardfsm.Conflict}
	case m.over(c.Share, false):
		return shardfsm.RegisterAnswer{Status: shardfsm.OverWrites}
	}
	m.ops = append(m.ops, modelOp{"refuse", c.Gallery, c.Op, c.Request, false, m.clock, c.Subject, id.Event{}, 0, c.Share.Tenant})
	return shardfsm.RegisterAnswer{Status: shardfsm.Done, Subject: c.Subject}
}

// refusal is of a write that was done, or of the next one.
func (w *shardWorld) refusal() []byte {
	n := w.events + 1
	if w.IntN(3) == 0 {
		n = 1 + w.IntN(n)
	}
	c := shardfsm.Refuse{EventWrite: shardfsm.EventWrite{
		Gallery: w.gallery(), Op: id.Operation{1 + 2*byte(w.IntN(2)), byte(n >> 8), byte(n)}, Request: [16]byte{byte(n)}, Keyed: w.IntN(2) == 0,
		Subject: subjectID(1 + w.IntN(4)), Time: w.tick(), Share: w.share(),
	}}
	c.Generation = w.generation(c.Gallery)
	return propose(w, shardfsm.RefuseOp, c, w.model.refuse(c))
}

// note returns a note, or mostly none, and the count of bars that its writer read.
func (w *shardWorld) note() (note []byte, claimed uint64) {
	if w.IntN(3) > 0 {
		return nil, 0
	}
	w.notes++
	note = append(make([]byte, 11), byte(w.notes>>8), byte(w.notes))
	note[0] = 1
	if w.IntN(4) > 0 {
		claimed = uint64(max(0, len(w.model.externals.bars)-w.IntN(3))) + 1
	}
	return note, claimed
}

func (w *shardWorld) external() []byte {
	of, _ := w.pick()
	if w.IntN(3) == 0 {
		return w.refusal()
	}
	if w.IntN(4) == 0 {
		c := shardfsm.Bar{Gallery: of.gallery, Generation: w.generation(of.gallery), Subject: of.entry.Subject}
		if claims := w.model.claims; len(claims) > 0 && w.IntN(2) == 0 {
			c.Gallery, c.Subject = claims[0].gallery, claims[0].subject
		}
		return propose(w, shardfsm.BarOp, c, w.model.bar(c))
	}
	c := shardfsm.Claim{Gallery: of.gallery, Generation: w.generation(of.gallery)}
	for range 1 + w.IntN(3) {
		change := claim.Change{Name: shard.ExternalName{byte(w.IntN(6))}, Subject: subjectID(1 + w.IntN(4))}
		if w.IntN(2) == 0 {
			change.From = w.model.externals.held[externalOf{c.Gallery, change.Name}]
			if w.IntN(4) == 0 {
				change.From.Turn++
			}
		}
		if w.IntN(3) == 0 {
			change.Subject = id.Subject{}
		}
		c.Changes = append(c.Changes, change)
	}
	return propose(w, shardfsm.ClaimOp, c, w.model.claimExternal(c))
}

// compareExternals compares a machine's claims and bars with the model.
func (w *shardWorld) compareExternals(t *testing.T, replica int, b *claim.Book) {
	t.Helper()
	x := w.model.externals
	if b.Len() != len(x.held) || b.Bars() != uint64(len(x.bars)) {
		t.Fatalf("replica %d: %d claims and %d bars, want %d and %d", replica, b.Len(), b.Bars(), len(x.held), len(x.bars))
	}
	for at, want := range x.held {
		if got := b.Holder(at.gallery, x.of[at.gallery], at.name); got != want {
			t.Fatalf("replica %d: holder of %x is %+v, want %+v", replica, at.name, got, want)
		}
	}
	for n := range w.events + 1 {
		for read := range len(x.bars) + 2 {
			if got, want := b.Barred(subjectID(n), uint64(read)), x.barred(subjectID(n), uint64(read)+1); got != want {
				t.Fatalf("replica %d: subject %d barred since %d: %v, want %v", replica, n, read, got, want)
			}
		}
	}
}
