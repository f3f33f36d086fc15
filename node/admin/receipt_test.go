package admin

import (
	"testing"
	"time"

	"facet/node/receipt"
)

func TestRemainsOnDiskIsNamed(t *testing.T) {
	t.Parallel()
	ended := time.Unix(1, 0)
	f := func(want string, r receipt.Replica, out bool) {
		t.Helper()
		if got := remains(r, out); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	f("", receipt.Replica{Needed: 7, ErasedTo: 7, Ended: ended}, false)
	f("", receipt.Replica{Needed: 7, ErasedTo: 9, Ended: ended}, false)
	f("erased up to index 6, needed 7", receipt.Replica{Needed: 7, ErasedTo: 6, Ended: ended}, false)
	f("no round of erasure has ended since the node's start", receipt.Replica{Needed: 7}, false)
	f("the replica is out of service and makes no rounds", receipt.Replica{Needed: 7, ErasedTo: 9, Ended: ended}, true)
	f("an older state of the replica was set aside: group-1.damaged-x",
		receipt.Replica{Needed: 7, ErasedTo: 9, Ended: ended, Aside: []string{"group-1.damaged-x"}}, false)
}
