package traffic

import (
	"slices"
	"testing"
	"time"
)

// A history in which an external id has two subjects at once is refused.
func TestTwoHoldersAreFound(t *testing.T) {
	t.Parallel()
	at := func(n int, o Named) Named {
		o.Badge, o.Call, o.End = "badge-0", time.Duration(2*n), time.Duration(2*n+1)
		return o
	}
	good := []Named{
		at(1, Named{Kind: enrol, Subject: "a"}), at(2, Named{Kind: enrol, Subject: "a", Refused: true}), at(3, Named{Kind: find, Subject: "a"}),
		at(4, Named{Kind: remove, Subject: "a"}), at(5, Named{Kind: remove, Subject: "a", Missing: true}), at(6, Named{Kind: find}),
		at(7, Named{Kind: enrol, Subject: "b"}), at(8, Named{Kind: remove, Subject: "a", Missing: true, Unsure: true}), at(9, Named{Kind: find, Subject: "b"}),
	}
	if err := UniquelyNamed(good); err != nil {
		t.Error(err)
	}
	for name, bad := range map[string]Named{
		"a second holder": {Kind: enrol, Subject: "c"}, "a holder that is gone": {Kind: find, Subject: "a"}, "none": {Kind: find},
		"refused for another": {Kind: enrol, Subject: "a", Refused: true}, "removed before": {Kind: remove, Subject: "a"},
	} {
		if UniquelyNamed(append(slices.Clip(good), at(10, bad))) == nil {
			t.Errorf("%s is not found", name)
		}
	}
}
