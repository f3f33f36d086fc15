package shardfsm

import (
	"bytes"
	"testing"

	"facet/raftfsm/fsmtest"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard"
	"facet/shard/claim"
)

func noted(n byte, claimed uint64) Register {
	c := testRegister(n)
	c.Note, c.Claimed = append([]byte{1, n}, make([]byte, 9+20)...), claimed
	return c
}

func TestClaimBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	name := shard.ExternalName{9, 8, 7}
	replace := testReplace(1, 1, 30)
	replace.Note, replace.Claimed, replace.Noted = append([]byte{1, 2}, make([]byte, 29)...), 2, true
	held := claim.Holder{Subject: testSubject(1), Turn: 1}
	again := keepsBytes(t, m, "claims.txt", fsmtest.From(1), []any{
		Grant{Gallery: testGallery, Generation: 1, Total: 10},
		Claim{Gallery: testGallery, Generation: 1, Changes: []claim.Change{{Name: name, Subject: testSubject(1)}, {Name: shard.ExternalName{1}, Subject: testSubject(2)}}},
		noted(1, 1),
		Bar{Gallery: testGallery, Generation: 1, Subject: testSubject(3)},
		replace,
		testAddEvent(1, 20),
		RemoveEvent{
			EventWrite: EventWrite{Gallery: testGallery, Generation: 1, Op: id.Operation{50}, Subject: testSubject(1), Event: testEvent(1), Time: testTime},
			Heir:       Heir{Event: testEvent(20), Sealed: []byte{1, 20}, Note: replace.Note},
		},
		Claim{Gallery: testGallery, Generation: 1, Changes: []claim.Change{{Name: name, From: held}}},
		noted(3, 1), // Barred
		Refuse{EventWrite{Gallery: testGallery, Generation: 1, Op: id.Operation{7}, Request: [16]byte{7}, Keyed: true, Subject: testSubject(1), Time: testTime}},
	})
	if a := register(t, m, noted(3, 1)); a.Status != Barred {
		t.Errorf("a claim from before the bar: %v", a.Status)
	}
	if got := again.Claims().Holder(testGallery, 1, shard.ExternalName{1}); got.Subject != testSubject(2) {
		t.Errorf("after a restart: %+v", got)
	}
	list, err := again.Shard().NotesOf(testGallery, 1, []id.Subject{testSubject(1)})
	if err != nil || len(list) != 1 || list[0].Event != testEvent(20) || !bytes.Equal(list[0].Note, replace.Note) {
		t.Errorf("after a restart: note %+v, %v", list, err)
	}
}

// A refused write has no effect, however late its first try comes, and one that had its effect is not refused.
func TestRefusalIsFinal(t *testing.T) {
	t.Parallel()
	m := filled(t)
	refuse := func(of EventWrite, holder byte) RegisterAnswer {
		t.Helper()
		of.Subject, of.Event = testSubject(holder), id.Event{}
		a, err := RefuseOp.Answer(m.Apply(20, RefuseOp.Encode(Refuse{of})))
		must.Do(t, err)
		return a
	}
	wants := func(what string, a RegisterAnswer, status Status, subject id.Subject) {
		t.Helper()
		if a.Status != status || a.Subject != subject {
			t.Errorf("%s: %v for %v, want %v for %v", what, a.Status, a.Subject, status, subject)
		}
	}
	late := noted(6, 1)
	late.Time = testTime
	wants("a refusal", refuse(late.EventWrite, 1), Done, testSubject(1))
	wants("another refusal", refuse(late.EventWrite, 2), Refused, testSubject(1))
	wants("the late first try", register(t, m, late), Refused, testSubject(1))
	late.Pending = true
	wants("the same with a guard", register(t, m, late), Refused, testSubject(1))
	late.Request[0]++
	wants("another body", register(t, m, late), Conflict, id.Subject{})
	done := noted(7, 1)
	done.Time = testTime
	register(t, m, done)
	wants("the refusal of what is done", refuse(done.EventWrite, 1), Replayed, id.Subject{})
	late.Request[0]--
	late.Pending, late.Recycle, late.Time = false, true, testTime+11*60_000
	wants("11 minutes later", register(t, m, late), Done, late.Subject)
}

// A pending event of a barred subject must not become active: its claim may be another's by then.
func TestBarWithdrawsPendingEvents(t *testing.T) {
	t.Parallel()
	m := filled(t)
	c := noted(6, 1)
	c.Time, c.Pending = testTime, true
	a := register(t, m, c)
	if a.Status != Done {
		t.Fatalf("pending: %v", a.Status)
	}
	m.Apply(20, BarOp.Encode(Bar{Gallery: testGallery, Generation: 1, Subject: c.Subject}))
	activate, err := ActivateOp.Answer(m.Apply(21, ActivateOp.Encode(testActivate(6, a.Claim))))
	if err != nil || activate.Status != UnknownEvent {
		t.Errorf("activation after a bar: %v, %v", activate.Status, err)
	}
	if a := register(t, m, c); a.Status != Barred {
		t.Errorf("again with the same claim: %v", a.Status)
	}
	c.Claimed = 2
	if a := register(t, m, c); a.Status != Done {
		t.Errorf("with a later claim: %v", a.Status)
	}
}
