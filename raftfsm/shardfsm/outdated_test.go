package shardfsm

import (
	"testing"

	"facet/internal/id"
)

func TestOutdatedEnrolmentLeavesNothing(t *testing.T) {
	t.Parallel()
	m := filled(t)
	by := func(n byte, epoch uint32) Register {
		c := testRegister(n)
		c.Op, c.Request, c.Epoch = id.Operation{90, n}, [16]byte{90, n}, epoch
		return c
	}
	m.Apply(6, GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 20}))
	if a := register(t, m, by(10, 1)); a.Status != Done {
		t.Fatalf("before the list changed: %v", a.Status)
	}
	m.Apply(7, WidenOp.Encode(Widen{Gallery: testGallery, Generation: 1, Epoch: 3}))
	before := m.Shard().Usage(testGallery)
	f := func(what string, c Register, want Status) {
		t.Helper()
		if a := register(t, m, c); a.Status != want {
			t.Errorf("%s: %v, want %v", what, a.Status, want)
		}
	}
	f("by the first list", by(11, 1), Outdated)
	f("by the one before", by(12, 2), Outdated)
	if after := m.Shard().Usage(testGallery); after != before {
		t.Errorf("usage %+v, before %+v", after, before)
	}
	f("a retry of what was done by the first list", by(10, 1), Replayed)
	f("by this list", by(11, 3), Done)
	f("by a later one", by(12, 4), Done)
	f("by a router that names none", by(13, 0), Done)
}
