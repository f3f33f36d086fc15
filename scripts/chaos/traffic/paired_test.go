package traffic

import (
	"slices"
	"testing"
	"time"
)

// A history in which a merge loses, doubles or brings back a face is refused.
func TestFacesLostByMergesAreFound(t *testing.T) {
	t.Parallel()
	at := func(from, to int, k kind, w where) Paired {
		return Paired{Face: "f", Kind: k, Where: w, Call: time.Duration(from), End: time.Duration(to)}
	}
	moved := []Paired{
		at(1, 2, enrol, onSource), at(3, 4, find, onSource), at(10, 30, copied, nowhere), at(10, 30, cleared, nowhere),
		at(11, 12, find, onSource), at(13, 14, find, onBoth), at(15, 26, find, onTarget), at(27, 28, find, onTarget), at(31, 32, find, onTarget),
	}
	if err := MergedWhole(append(slices.Clip(moved), Paired{Face: "another", Kind: find})); err != nil {
		t.Error(err)
	}
	late := []Paired{ // the second search asks the source before the registration, and the target after the copy
		at(1, 30, copied, nowhere), at(1, 30, cleared, nowhere), at(4, 10, enrol, onSource),
		at(8, 12, find, onTarget), at(13, 14, find, onBoth), at(15, 16, find, onTarget),
	}
	if err := MergedWhole(late); err != nil {
		t.Error(err)
	}
	if MergedWhole(append(late, at(17, 18, find, onBoth))) == nil {
		t.Error("a face that is on the source again is not found")
	}
	for name, bad := range map[string]Paired{
		"lost before":                  at(5, 6, find, nowhere),
		"lost meanwhile":               at(11, 12, find, nowhere),
		"lost after":                   at(33, 34, find, nowhere),
		"at the target before":         at(5, 6, find, onTarget),
		"at both before":               at(5, 6, find, onBoth),
		"at the source after":          at(33, 34, find, onSource),
		"at both after":                at(33, 34, find, onBoth),
		"at the source after the copy": at(27, 28, find, onSource),
		"registered twice":             at(5, 6, enrol, onSource),
	} {
		if MergedWhole(append(slices.Clip(moved), bad)) == nil {
			t.Errorf("a face that is %s is not found", name)
		}
	}
	if MergedWhole([]Paired{at(1, 2, enrol, onSource), at(3, 9, cleared, nowhere), at(10, 11, find, onTarget)}) == nil {
		t.Error("a source that is removed without a copy is not found")
	}
}
