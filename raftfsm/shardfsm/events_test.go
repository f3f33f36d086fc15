package shardfsm

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/internal/must"
	"facet/raftfsm/command"
	"facet/raftfsm/fsmtest"
	"facet/shard"
)

const testTime = 1_700_000_002_000

var fencedGallery = id.Gallery{UUID: id.UUID{1, 1}}

func testSubject(n byte) id.Subject { return id.Subject{UUID: id.UUID{2, n}} }
func testEvent(n byte) id.Event     { return id.Event{UUID: id.UUID{3, n}} }

func testAddEvent(n, event byte) AddEvent {
	return AddEvent{Register{
		EventWrite: EventWrite{
			Gallery: testGallery, Generation: 1, Op: id.Operation{event}, Request: [16]byte{event, 1}, Keyed: true,
			Subject: testSubject(n), Event: testEvent(event), Time: testTime,
		},
		Tags: []uint32{3}, Sealed: []byte{1, event},
	}}
}

func testReplace(n, event, op byte) ReplaceEvent {
	return ReplaceEvent{
		EventWrite: EventWrite{
			Gallery: testGallery, Generation: 1, Op: id.Operation{op}, Request: [16]byte{op, 1}, Keyed: true,
			Subject: testSubject(n), Event: testEvent(event), Time: testTime,
		},
		Tags: []uint32{4}, Sealed: []byte{1, op}, Revision: 1,
	}
}

func testPending(n byte) Register {
	c := testRegister(n)
	c.Time, c.Pending = testTime, true
	return c
}

func testActivate(n byte, claim uint64) Activate {
	c := testRegister(n)
	return Activate{
		EventWrite: EventWrite{
			Gallery: testGallery, Generation: 1, Op: c.Op, Request: c.Request, Keyed: c.Keyed,
			Subject: c.Subject, Event: c.Event, Time: testTime,
		},
		Claim: claim,
	}
}

func testWithdraw(n byte) Withdraw {
	return Withdraw{Gallery: testGallery, Generation: 1, Subject: testSubject(n), Event: testEvent(n), Time: testTime}
}

// script returns the commands that filled does not apply. Applied to it in this order, each
// is Done.
func script() []any {
	elsewhere := testRegister(9)
	elsewhere.Gallery = fencedGallery
	kept := testReplace(0, 0, 31)
	kept.KeepTags, kept.Revision, kept.Oldest, kept.Tags = true, 2, true, nil
	further := testAddEvent(4, 40)
	further.Pending = true
	return []any{
		Grant{Gallery: testGallery, Generation: 1, Total: 10},
		testAddEvent(2, 20),
		testReplace(0, 0, 30),
		kept,
		testPending(4),
		testActivate(4, 10), // the claim in the answer to testPending(4)
		further,
		testPending(6),
		testWithdraw(6),
		RemoveEvent{
			EventWrite: EventWrite{
				Gallery: testGallery, Generation: 1, Op: id.Operation{50}, Request: [16]byte{50}, Keyed: true,
				Subject: testSubject(2), Event: testEvent(20), Time: testTime,
			},
		},
		ReturnSlots{Gallery: testGallery, Generation: 1, Granted: 10, Keep: 1, Recycle: 1, Time: testTime},
		Widen{Gallery: testGallery, Generation: 1, Epoch: 3},
		Grant{Gallery: fencedGallery, Generation: 1, Total: 1},
		elsewhere,
		Fence{Gallery: fencedGallery, Generation: 2},
		Purge{Gallery: fencedGallery, Generation: 2, Max: 0},
	}
}

// encode returns the bytes of a command.
func encode(c any) []byte { return fsmtest.Encode(commands[:], c) }

// scripted returns filled after script.
func scripted(t testing.TB) *Machine {
	t.Helper()
	m := filled(t)
	for i, c := range script() {
		if got := fsmtest.Status[Status](t, m.Apply(uint64(i+6), encode(c))); got != Done {
			t.Fatalf("command %d, %T: %v", i, c, got)
		}
	}
	return m
}

func TestEventBytesMatchFormat(t *testing.T) {
	t.Parallel()
	keepsBytes(t, filled(t), "events.txt", fsmtest.From(6), script())
}

func TestCommandsChangeTheirRecords(t *testing.T) {
	t.Parallel()
	s := scripted(t).Shard()
	want := shard.Usage{Granted: 10, Returned: 1, Active: 3, Deleted: 4, Pending: 1}
	if got := s.Usage(testGallery); got != want {
		t.Errorf("usage: got %+v, want %+v", got, want)
	}
	events, err := s.Events(testGallery, 1, testSubject(0))
	if diff := cmp.Diff([]shard.Active{{Event: testEvent(0), Revision: 2, Tags: []uint32{4}, Time: 1_700_000_002_000}}, events); err != nil || diff != "" {
		t.Errorf("%v, events (-want +got):\n%s", err, diff)
	}
	if got := s.Stats().Purging; got != 1 {
		t.Errorf("%d entries to be purged, want 1", got)
	}
}

// answer applies a command and returns its RegisterAnswer.
func answer[C any](t testing.TB, m *Machine, op command.Op[C, RegisterAnswer], c C) RegisterAnswer {
	t.Helper()
	a, err := op.Answer(m.Apply(1, op.Encode(c)))
	must.Do(t, err)
	return a
}

func TestLosingUpdateLearnsNewRevision(t *testing.T) {
	t.Parallel()
	m := filled(t)
	first, second := testReplace(0, 0, 30), testReplace(0, 0, 31)
	if got := answer(t, m, ReplaceEventOp, first); got.Status != Done || got.Revision != 1 {
		t.Fatalf("the first: %+v", got)
	}
	moved := answer(t, m, ReplaceEventOp, second)
	if want := (RegisterAnswer{Status: Moved, Subject: testSubject(0), Event: testEvent(0), Revision: 2}); !cmp.Equal(want, moved) {
		t.Fatalf("the second (-want +got):\n%s", cmp.Diff(want, moved))
	}
	second.Revision = moved.Revision
	if got := answer(t, m, ReplaceEventOp, second); got.Status != Done || got.Revision != 2 {
		t.Fatalf("the second, again: %+v", got)
	}
	// Retries get the first answers, without faces that are gone.
	if got := answer(t, m, ReplaceEventOp, first); got.Status != Replayed || got.Sealed != nil || got.Revision != 1 {
		t.Errorf("retry of the first: %+v", got)
	}
	if got := answer(t, m, ReplaceEventOp, second); got.Status != Replayed || !bytes.Equal(got.Sealed, second.Sealed) {
		t.Errorf("retry of the second: %+v", got)
	}
	if got := register(t, m, testRegister(0)); got.Status != Replayed || got.Sealed != nil {
		t.Errorf("retry of the registration: %+v", got)
	}
}

func TestActivationRemembersRegistration(t *testing.T) {
	t.Parallel()
	m := filled(t)
	c := testPending(4)
	c.Recycle = true
	first := register(t, m, c)
	c.Time += 20_000
	again := register(t, m, c)
	if first.Status != Done || again.Status != Done || first.Claim == 0 || again.Claim != first.Claim {
		t.Fatalf("pending: %+v, then %+v", first, again)
	}
	a := testActivate(4, first.Claim)
	a.Time = c.Time + 20_000 // within 30 s of the renewal
	if got := answer(t, m, ActivateOp, a); got.Status != Done {
		t.Fatalf("activate: %v", got.Status)
	}
	if got := answer(t, m, ActivateOp, a); got.Status != Replayed {
		t.Errorf("activate again: %v", got.Status)
	}
	if got := register(t, m, c); got.Status != Replayed || got.Claim != 0 {
		t.Errorf("register again: %+v", got)
	}
}

func TestInterruptedClaimIsNotActivated(t *testing.T) {
	t.Parallel()
	f := func(name string, interrupt func(m *Machine) (later int64)) {
		t.Helper()
		m := filled(t)
		c := testPending(4)
		first := register(t, m, c)
		c.Time += interrupt(m)
		again := register(t, m, c) // a late repetition of the same write
		if again.Status != Done || again.Claim == first.Claim {
			t.Fatalf("%s: pending as %d, then %v as %d", name, first.Claim, again.Status, again.Claim)
		}
		a := testActivate(4, first.Claim)
		a.Time = c.Time
		if got := answer(t, m, ActivateOp, a); got.Status != UnknownEvent {
			t.Errorf("%s: activate the first claim: %v", name, got.Status)
		}
		a.Claim = again.Claim
		if got := answer(t, m, ActivateOp, a); got.Status != Done {
			t.Errorf("%s: activate the second claim: %v", name, got.Status)
		}
	}
	f("withdrawn", func(m *Machine) int64 {
		m.Apply(2, WithdrawOp.Encode(testWithdraw(4)))
		return 0
	})
	f("expired", func(*Machine) int64 { return PendingMillis })
}

func TestActiveEventIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	m := filled(t)
	before := m.Shard().Usage(testGallery)
	a, err := WithdrawOp.Answer(m.Apply(1, WithdrawOp.Encode(testWithdraw(2))))
	if err != nil || a.Status != Activated || m.Shard().Usage(testGallery) != before {
		t.Errorf("got %v, %v", a.Status, err)
	}
	a, err = WithdrawOp.Answer(m.Apply(1, WithdrawOp.Encode(testWithdraw(99))))
	if err != nil || a.Status != Done {
		t.Errorf("one that was never pending: got %v, %v", a.Status, err)
	}
}

func TestFenceRefusesOlderGenerations(t *testing.T) {
	t.Parallel()
	m := filled(t)
	unseen := id.Gallery{UUID: id.UUID{77}}
	for _, g := range []id.Gallery{testGallery, unseen} {
		m.Apply(1, FenceOp.Encode(Fence{Gallery: g, Generation: 2}))
	}
	restored := New(newTable(t), testArena)
	must.Do(t, restored.Restore(bytes.NewReader(fsmtest.Snapshot(t, m))))
	for _, m := range []*Machine{m, restored} {
		for _, g := range []id.Gallery{testGallery, unseen} {
			grant, err := GrantOp.Answer(m.Apply(1, GrantOp.Encode(Grant{Gallery: g, Generation: 1, Total: 9})))
			if err != nil || grant.Status != StaleGeneration {
				t.Errorf("grant: %v, %v", grant.Status, err)
			}
			c := testRegister(7)
			c.Gallery = g
			if got := register(t, m, c); got.Status != StaleGeneration {
				t.Errorf("register: %v", got.Status)
			}
			if n := m.Shard().ListEvents(g, 0, 10, shard.Ascending).Total; n != 0 {
				t.Errorf("%d entries are listed", n)
			}
		}
		// The fence refuses retries of earlier writes too.
		if got := register(t, m, testRegister(2)); got.Status != StaleGeneration {
			t.Errorf("retry: %v", got.Status)
		}
		for left := 2; left >= 0; left-- {
			a, err := PurgeOp.Answer(m.Apply(1, PurgeOp.Encode(Purge{Gallery: testGallery, Generation: 2, Max: 1})))
			if err != nil || a.Status != Done || a.Left != uint64(left) {
				t.Errorf("purge: %+v, %v, want %d left", a, err, left)
			}
		}
		a, err := PurgeOp.Answer(m.Apply(1, PurgeOp.Encode(Purge{Gallery: testGallery, Generation: 3, Max: 1})))
		if err != nil || a.Status != NotFenced {
			t.Errorf("purge of a later generation: %+v, %v", a, err)
		}
	}
}
