package traffic

import (
	"strings"
	"testing"
	"time"
)

// at makes an Operation of the second from to the second to.
func at(from, to int, o Operation) Operation {
	o.Subject = "s"
	if o.Tag == "" && (o.Kind == find || o.Kind == verify) {
		o.Tag = anyTag
	}
	o.Call, o.End = time.Duration(from)*time.Second, time.Duration(to)*time.Second
	return o
}

var (
	enrolled = Operation{Kind: enrol, Event: "e1", Face: "a"}
	absent   = Operation{Kind: find, Face: "a"}
	present  = Operation{Kind: find, Face: "a", Seen: []string{"e1"}}
	removed  = Operation{Kind: remove}
)

func TestHistoriesThatAreRightAreAccepted(t *testing.T) {
	t.Parallel()
	f := func(history ...Operation) {
		t.Helper()
		if err := Linearizable(history, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
	f(at(0, 1, enrolled), at(2, 3, present), at(4, 5, removed), at(6, 7, absent))
	f(at(0, 5, enrolled), at(1, 2, present), at(3, 6, present)) // found before its answer
	f(at(0, 5, enrolled), at(1, 2, absent), at(3, 4, present))
	f(at(0, 1, enrolled), at(2, 9, removed), at(3, 4, present), at(5, 6, absent))
	f(at(0, 1, enrolled), at(2, 3, Operation{Kind: remove, Missing: true, Unsure: true}), at(4, 5, absent)) // its answer was lost
	f(at(0, 1, enrolled), at(2, 3, Operation{Kind: add, Event: "e2", Face: "a", Tag: "red"}),
		at(4, 5, Operation{Kind: find, Face: "a", Seen: []string{"e1", "e2"}}), at(4, 5, Operation{Kind: find, Face: "a", Tag: "red", Seen: []string{"e2"}}),
		at(6, 7, Operation{Kind: renew, Event: "e1", Face: "b", Tag: keepTag}), at(8, 9, Operation{Kind: verify, Face: "b"}),
		at(10, 11, Operation{Kind: change, Event: "e2", Face: "b"}), at(12, 13, Operation{Kind: verify, Face: "a", Missing: true}),
		at(14, 15, Operation{Kind: drop, Event: "e1"}), at(16, 17, Operation{Kind: events, Seen: []string{"e2"}}),
		at(18, 19, Operation{Kind: drop, Event: "e2"}), at(20, 21, Operation{Kind: add, Face: "a", Missing: true}))
}

// An event goes in the time of its expiry, and neither before nor after.
func TestExpiryBoundsWhenAnEventGoes(t *testing.T) {
	t.Parallel()
	gone := at(10, 15, Operation{Kind: expire, Event: "e1"})
	for _, reading := range []struct {
		from, to int
		seen     Operation
		right    bool
	}{
		{2, 3, present, true},
		{2, 3, absent, false},
		{11, 12, present, true},
		{11, 12, absent, true},
		{16, 17, present, false},
		{16, 17, absent, true},
	} {
		err := Linearizable([]Operation{at(0, 1, enrolled), gone, at(reading.from, reading.to, reading.seen)}, t.TempDir())
		if (err == nil) != reading.right {
			t.Errorf("%s from %d to %d: %v", reading.seen, reading.from, reading.to, err)
		}
	}
	second := at(2, 3, Operation{Kind: add, Event: "e2", Face: "a"})
	rest := at(16, 17, Operation{Kind: find, Face: "a", Seen: []string{"e2"}})
	if err := Linearizable([]Operation{at(0, 1, enrolled), second, gone, rest}, t.TempDir()); err != nil {
		t.Errorf("a subject loses one of two events: %v", err)
	}
}

func TestHistoriesThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	f := func(what string, history ...Operation) {
		t.Helper()
		err := Linearizable(history, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "not linearizable") || !strings.Contains(err.Error(), "worker") {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("a lost write", at(0, 1, enrolled), at(2, 3, absent))
	f("a write that is lost later", at(0, 1, enrolled), at(2, 3, present), at(4, 5, absent))
	f("a stale read", at(0, 1, enrolled), at(2, 3, removed), at(4, 5, present))
	f("a read that goes back", at(0, 9, enrolled), at(1, 2, present), at(3, 4, absent))
	f("a subject that rises from the dead", at(0, 1, enrolled), at(2, 3, removed), at(4, 5, absent), at(6, 7, present))
	f("a subject that is born twice", at(0, 1, enrolled), at(2, 3, enrolled))
	f("a retry that makes a second event", at(0, 1, enrolled), at(2, 3, Operation{Kind: events, Seen: []string{"e1", "e2"}}))
	f("a removal of what nobody removed", at(0, 1, enrolled), at(2, 3, Operation{Kind: remove, Missing: true}))
	f("a removal that comes undone after a lost answer", at(0, 1, enrolled), at(2, 3, Operation{Kind: remove, Missing: true, Unsure: true}), at(4, 5, present))
	f("an update that is lost", at(0, 1, enrolled), at(2, 3, Operation{Kind: renew, Event: "e1", Face: "b"}), at(4, 5, present))
	f("an update of another event than the first", at(0, 1, enrolled), at(2, 3, Operation{Kind: add, Event: "e2", Face: "a"}),
		at(4, 5, Operation{Kind: renew, Event: "e2", Face: "b"}))
	f("a verification of a face that is gone", at(0, 1, enrolled), at(2, 3, Operation{Kind: change, Event: "e1", Face: "b"}), at(4, 5, Operation{Kind: verify, Face: "a"}))
	f("a filter that lets another tag through", at(0, 1, enrolled), at(2, 3, Operation{Kind: find, Face: "a", Tag: "red", Seen: []string{"e1"}}))
}

func TestFinalListHoldsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	history := []Operation{at(0, 1, enrolled)}
	end := Operation{Kind: events, Call: time.Minute, End: time.Minute}
	ops, err := listed(history, []entry{{"s", "e1"}}, end)
	if err != nil || Linearizable(append(history, ops...), t.TempDir()) != nil {
		t.Errorf("what is right is refused: %v", err)
	}
	ops, err = listed(history, nil, end)
	if err != nil || Linearizable(append(history, ops...), t.TempDir()) == nil {
		t.Errorf("a lost subject is not noticed: %v", err)
	}
	if _, err = listed(history, []entry{{"s", "e1"}, {"other", "e1"}}, end); err == nil {
		t.Error("a subject that nobody was told of is not noticed")
	}
	if _, err = listed(history, []entry{{"s", "e1"}, {"s", "e1"}}, end); err == nil {
		t.Error("a doubled event is not noticed")
	}
	if crowded(SmallSize, SmallSize) != nil || crowded(SmallSize+1, SmallSize) == nil {
		t.Error("the size of a gallery is not what is checked")
	}
}
