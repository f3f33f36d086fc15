package traffic

import (
	"testing"
	"time"
)

// mergedPair returns clients with a pair: t1 and s1 were registered in the seconds 1 and 2, and merged
// from the second 10 to the second 20. With end 0 the merge reached no node.
func mergedPair(end time.Duration) pairing {
	p := &pair{
		target: "t", source: "s", call: 10 * time.Second, end: end,
		faces: []pairFace{{face: "own", at: onTarget}, {face: "other", at: onSource}, {face: "late", at: nowhere}},
		ids:   map[[2]string]string{{"t", "own"}: "t1", {"s", "other"}: "s1"},
	}
	if end != 0 {
		p.ids[[2]string{"t", "other"}] = "c1"
	}
	enrolled := Paired{Kind: enrol, Call: time.Second, End: 2 * time.Second}
	own, other := enrolled, enrolled
	own.Face, other.Face = "own", "other"
	return pairing{reader{&Traffic{pairs: []*pair{p}, Paired: []Paired{own, other}}}}
}

var own, original, duplicate, stranger = entry{"t", "t1"}, entry{"s", "s1"}, entry{"t", "c1"}, entry{"x", "x1"}

func TestListShowsAllEventsOfMergedSubjectsOnce(t *testing.T) {
	t.Parallel()
	f := func(what string, right bool, end time.Duration, list ...entry) {
		t.Helper()
		others, err := mergedPair(end).listed(append(list, stranger), "n1")
		if (err == nil) != right || right && (len(others) != 1 || others[0] != stranger) {
			t.Errorf("%s: %v, %v", what, others, err)
		}
	}
	const end = 20 * time.Second
	f("merged", true, end, own, duplicate)
	f("merged, with the source", false, end, own, duplicate, original)
	f("merged, without the copy", false, end, own)
	f("merged, with another event", false, end, own, duplicate, entry{"t", "c2"})
	f("merged, with an event twice", false, end, own, duplicate, duplicate)
	f("not merged", true, 0, own, original)
	f("not merged, with a copy", false, 0, own, original, duplicate)
	f("not merged, without the source", false, 0, own)
}

func TestBackupHasEventsOfMergedSubjects(t *testing.T) {
	t.Parallel()
	f := func(what string, right bool, from, to int, list ...entry) {
		t.Helper()
		c := Copy{From: time.Duration(from) * time.Second, To: time.Duration(to) * time.Second, paired: list}
		if err := mergedPair(20 * time.Second).copied(c); (err == nil) != right {
			t.Errorf("%s: %v", what, err)
		}
	}
	f("made before the registration", true, 0, 0)
	f("made before the registration, with an event", false, 0, 0, own)
	f("made before the merge", true, 3, 4, own, original)
	f("made before the merge, with a copy", false, 3, 4, own, original, duplicate)
	f("made before the merge, without the source", false, 3, 4, own)
	f("made meanwhile, before the copy", true, 11, 12, own, original)
	f("made meanwhile, with both", true, 11, 12, own, original, duplicate)
	f("made meanwhile, with the copy", true, 11, 12, own, duplicate)
	f("made meanwhile, with neither", false, 11, 12, own)
	f("made after", true, 21, 22, own, duplicate)
	f("made after, with the source", false, 21, 22, own, duplicate, original)
	f("made after, with another event", false, 21, 22, own, duplicate, entry{"t", "c2"})
}
