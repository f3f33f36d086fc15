package node_test

import (
	"net/http"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/nodetest"
	"facet/raftfsm/fsmtest"
)

// TestErasedCasesLeaveEveryDisk scans the data directories of all nodes for cases, as
// TestErasedDataLeavesEveryDisk does for faces.
func TestErasedCasesLeaveEveryDisk(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		const bound, reference = 8 * time.Second, "a visit to the office"
		r := startReviewOn(t, nodetest.Options{EraseWithin: bound}, 1)
		_, secret := galleryOf(t, r.cluster, r.admin)
		files := func(caseID string, members byte, secrets ...[]byte) (found []string) {
			t.Helper()
			is, err := id.Parse(caseID)
			if err != nil {
				t.Fatal(err)
			}
			begin := append([]byte{0xa0 | members, 1, 0x50}, is[:]...) // a map of so many members; the first one is the id
			for _, n := range r.cluster.Nodes {
				found = append(found, fsmtest.NewSealedScanner(begin, reference, secrets...).Files(t, n.Config.Dir)...)
			}
			return found
		}
		const open, closed, erased = 9, 12, 5 // the members of a case: see job.Case
		one, two, other := r.doubt(t, "staff/0", reference), r.doubt(t, "staff/0", reference+" 2"), r.doubt(t, "staff/1", "another visit")
		r.decide(t, "anna", two, "different", http.StatusOK, "different")
		for caseID, members := range map[string]byte{one: open, two: closed, other: open} {
			if found := files(caseID, members, secret); len(found) < 3 {
				t.Fatalf("the scan finds a case of %d members in %v only", members, found)
			}
		}
		if found := files(one, open); len(found) > 0 {
			t.Fatalf("the reference is in clear in %v", found)
		}
		expect(t, r.admin, http.StatusNoContent, r.url(0), http.MethodDelete, "/v1.1/subjects/"+r.ids["staff/0"], nil)
		r.redact(t)
		deadline := time.Now().Add(2 * bound)
		for _, of := range []struct {
			caseID  string
			members byte
		}{{one, open}, {two, open}, {two, closed}} {
			for found := files(of.caseID, of.members, secret); len(found) > 0; found = files(of.caseID, of.members, secret) {
				if time.Now().After(deadline) {
					t.Fatalf("after the erasure a case of %d members is in %v", of.members, found)
				}
				time.Sleep(bound / 40)
			}
		}
		if len(files(one, erased, secret)) < 3 || len(files(other, open, secret)) < 3 {
			t.Error("others are gone too")
		}
	})
}
