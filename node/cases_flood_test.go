package node_test

import (
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
	"facet/node/transport/memnet"
)

// visit verifies the photo of a visit against a subject through the i-th node, with an application, and returns the
// case of the doubt.
func (r *review) visit(t *testing.T, i int, external, visit string, more map[string]any) (caseID string) {
	t.Helper()
	body := map[string]any{"id": r.ids[external], "probe": nodetest.Image(stranger(t, "person "+external[len("staff/"):], visit))}
	maps.Copy(body, more)
	var a struct{ Reason, CaseID string }
	answer := r.admin.Call(t, r.url(i%3), http.MethodPost, "/v1.1/face/verify", body)
	if answer.Decode(t, &a); answer.Status != http.StatusNotFound || a.Reason != "Doubtful" {
		t.Errorf("%s of %s: %d %s", visit, external, answer.Status, answer.Body)
	}
	return a.CaseID
}

// TestSameProbeIsSameCase sends photos again, with other names.
func TestSameProbeIsSameCase(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		first := r.visit(t, 0, "staff/0", "a", map[string]any{"reference": "a"})
		f := func(what, external, photo, reference string, same bool) string {
			t.Helper()
			time.Sleep(time.Second) // else the signature is the same, and so is the case
			got := r.visit(t, len(photo), external, photo, map[string]any{"reference": reference})
			if got == "" || (got == first) != same {
				t.Errorf("%s has the case %q, the first one %s", what, got, first)
			}
			return got
		}
		f("the same photo without a name", "staff/0", "a", "", true)
		f("the same photo with another name", "staff/0", "a", "b", true)
		f("another photo with the same name", "staff/0", "other", "a", true)
		f("another photo", "staff/0", "other", "c", false)
		f("the photo of another subject", "staff/1", "a", "a", false)
		r.decide(t, "", first, "different", http.StatusOK, "different")
		again := f("the photo after a verdict", "staff/0", "a", "a", false)
		if second := f("the photo after that", "staff/0", "a", "", false); second != again {
			t.Errorf("the open case is %s, want %s", second, again)
		}
	})
}

// TestCasesOfMinuteAreBounded opens cases until there are none, also at the next leader.
func TestCasesOfMinuteAreBounded(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReviewOn(t, nodetest.Options{Shards: 1}, 1)
		began, first := time.Now(), ""
		for i := range 60 {
			caseID := r.visit(t, i, "staff/0", fmt.Sprint(i), nil)
			if caseID == "" {
				t.Fatalf("visit %d has no case", i)
			}
			if i == 0 {
				first = caseID
			}
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Fatalf("60 cases took %v, so this shows nothing", took)
		}
		none := func(when string) {
			t.Helper()
			if got := r.visit(t, 0, "staff/1", "more "+when, nil); got != "" {
				t.Errorf("%s: another case, %s", when, got)
			}
			time.Sleep(time.Second)
			if got := r.visit(t, 1, "staff/0", "0", nil); got != first {
				t.Errorf("%s: a photo with a case has %q, want %s", when, got, first)
			}
		}
		none("after 60")
		for i, m := range r.cluster.Nodes {
			if m.Node.Leads(1) {
				m.Node.HandOver(t, r.cluster.Nodes[(i+1)%3].Node)
				break
			}
		}
		none("after a change of the leader")
		dropped := uint64(0)
		for _, m := range r.cluster.Nodes {
			dropped += m.Node.Router().CaseFigures().Dropped
		}
		if dropped != 2 {
			t.Errorf("%d doubts without a case were counted, want 2", dropped)
		}
		time.Sleep(time.Minute - time.Since(began) + time.Second)
		if got := r.visit(t, 2, "staff/1", "later", nil); got == "" {
			t.Error("no case in the next minute")
		}
	})
}

// TestGalleriesChangeCasesApart opens many cases in a gallery of a slow network. A case of another gallery with the
// same leader does not wait for them.
func TestGalleriesChangeCasesApart(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		flood := startReviewOn(t, nodetest.Options{Shards: 1}, 1)
		quiet := reviewOf(t, flood.cluster, "other bank", 1)
		for _, from := range flood.cluster.Nodes {
			for _, to := range flood.cluster.Nodes {
				if from != to {
					flood.cluster.Network.Set(from.Host, to.Host, memnet.Link{Delay: 5 * time.Millisecond})
				}
			}
		}
		took := func(visit string) time.Duration {
			began := time.Now()
			if quiet.visit(t, 0, "staff/0", visit, nil) == "" {
				t.Error("the other tenant got no case")
			}
			return time.Since(began)
		}
		alone := took("alone")
		var work sync.WaitGroup
		began := time.Now()
		for i := range 40 {
			work.Go(func() { flood.visit(t, i, "staff/0", fmt.Sprint(i), nil) })
		}
		time.Sleep(alone / 2)
		beside := took("beside a flood")
		work.Wait()
		if all := time.Since(began); all < 10*alone || beside > all/4 { // one turn for both takes as long as the flood
			t.Errorf("a case beside a flood took %v, alone %v; the flood %v", beside, alone, all)
		}
	})
}

// TestReferenceNamesNoSubject names a probe like a subject of the gallery.
func TestReferenceNamesNoSubject(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 1)
		body := map[string]any{"id": r.ids["staff/0"], "probe": nodetest.Image(stranger(t, "person 0", ""))}
		for _, name := range []string{"staff/0", "staff/3"} {
			body["reference"] = name
			var a struct{ Message, CaseID string }
			expect(t, r.admin, http.StatusBadRequest, r.url(0), http.MethodPost, "/v1.1/face/verify", body).Decode(t, &a)
			if a.CaseID != "" || a.Message != "The reference is the externalId of a subject; it must name the photo that was sent." {
				t.Errorf("%+v", a)
			}
		}
		if got := r.list(t, "anna", ""); len(got) != 0 {
			t.Errorf("it has opened %+v", got)
		}
		expect(t, r.admin, http.StatusNoContent, r.url(1), http.MethodDelete, "/v1.1/subjects/externalId:staff%2F3", nil)
		if body["reference"] = "staff/3"; r.visit(t, 2, "staff/0", "", body) == "" {
			t.Error("nobody has the external id any more, and there is no case")
		}
	})
}
