package traffic

import (
	"testing"
	"time"
)

// copyOf is a copy that was made from one second to another.
func copyOf(from, to int, list ...entry) Copy {
	return Copy{From: time.Duration(from) * time.Second, To: time.Duration(to) * time.Second, active: list, node: "restored"}
}

var held = entry{"s", "e1"}

func TestBackupHoldsOnlyEarlierWrites(t *testing.T) {
	t.Parallel()
	history := []Operation{at(10, 11, enrolled), at(20, 21, removed)}
	f := func(what string, right bool, c Copy) {
		t.Helper()
		clients := &Traffic{History: append([]Operation(nil), history...)}
		err := clients.Whole(c)
		if err == nil {
			err = Linearizable(clients.History, t.TempDir())
		}
		if (err == nil) != right {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("made before, without it", true, copyOf(1, 2))
	f("made before, with it", false, copyOf(1, 2, held))
	f("made while it was enrolled, without it", true, copyOf(9, 12))
	f("made while it was enrolled, with it", true, copyOf(9, 12, held))
	f("made after, with it", true, copyOf(12, 13, held))
	f("made after, without it", false, copyOf(12, 13))
	f("made while it was removed, with it", true, copyOf(19, 22, held))
	f("made after its removal, without it", true, copyOf(22, 23))
	f("made after its removal, with it", false, copyOf(22, 23, held))
	f("with an event that nobody made", false, copyOf(12, 13, held, entry{"s", "e2"}))
	f("with a subject that nobody enrolled", false, copyOf(12, 13, held, entry{"other", "e1"}))
}

func TestRestoreLeavesOutErasedOnly(t *testing.T) {
	t.Parallel()
	gone := entry{"gone", "e1"}
	whole, newer := copyOf(1, 2, held, gone), copyOf(3, 4, held, entry{"later", "e1"})
	f := func(what string, right bool, restored Copy) {
		t.Helper()
		if err := Erased(restored, whole, newer); (err == nil) != right {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("all but the erased", true, copyOf(1, 2, held))
	f("the erased is back", false, copyOf(1, 2, held, gone))
	f("somebody else is missing", false, copyOf(1, 2))
	f("somebody who was enrolled later is there", false, copyOf(1, 2, held, entry{"later", "e1"}))
}
