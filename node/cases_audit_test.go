package node_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"facet/node/audit/entry"
	"facet/node/nodetest"
)

// TestWholeCaseIsAudited follows a case through the log: the verification that opened it, who saw it, and who
// said what.
func TestWholeCaseIsAudited(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		r := startReview(t, 2)
		a := auditOf(t, r.promises, r.admin, r.tenant(t))
		caseID := r.doubt(t, "staff/0", "visit 1")
		r.list(t, "anna", "&state=open")
		r.one(t, "ben", caseID)
		r.decide(t, "anna", caseID, "same", http.StatusOK, "open")
		r.decide(t, "ben", caseID, "different", http.StatusOK, "disputed")
		r.decide(t, "ben", caseID, "same", http.StatusBadRequest, "CaseClosed")
		opened := "POST /v1.1/face/verify 404 Doubtful  "
		want := []string{
			opened, opened, opened,
			"GET /v1.1/cases 200   anna",
			"GET /v1.1/cases/{caseId} 200   ben",
			"PUT /v1.1/cases/{caseId}/verdict 200  same anna",
			"PUT /v1.1/cases/{caseId}/verdict 200  different ben",
			"PUT /v1.1/cases/{caseId}/verdict 400 CaseClosed same ben",
		}
		slices.Sort(want)
		var records []*entry.Record
		var got []string
		for late := time.Now().Add(10 * time.Second); len(got) < len(want) && time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
			records, got = a.read(t, 0), nil
			for _, e := range records {
				if e.Kind == entry.Request && (strings.Contains(e.Operation, "/cases") || strings.HasSuffix(e.Operation, "/face/verify")) {
					got = append(got, fmt.Sprint(e.Operation, " ", e.Status, " ", e.Reason, " ", e.Verdict, " ", e.Holder))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		checkCaseRecords(t, records, caseID)
		checkDoubtful(t, a)
	})
}

// checkDoubtful searches, and checks that the record has the doubtful candidates of the answer.
func checkDoubtful(t *testing.T, a *audited) {
	t.Helper()
	var answer struct{ Candidates, Doubtful []struct{ Score int } }
	body := map[string]any{"probe": nodetest.Image("person 1"), "threshold": 7000, "limit": 50}
	a.call(t, 1, http.MethodPost, "/v1.1/face/search", body).Decode(t, &answer)
	if len(answer.Candidates) != 1 || len(answer.Doubtful) == 0 {
		t.Fatalf("%+v", answer)
	}
	want := []int{answer.Candidates[0].Score}
	for _, d := range answer.Doubtful {
		want = append(want, d.Score)
	}
	searches := 0
	for _, e := range a.readAll(t, 0) {
		if e.Kind != entry.Request || e.Operation != "POST /v1.1/face/search" {
			continue
		}
		searches++
		var scores []int
		for _, c := range e.List() {
			scores = append(scores, int(c.Score))
		}
		if !slices.Equal(scores, want) || e.Threshold != 7001 {
			t.Errorf("the record has %v at %d, the answer %v", scores, e.Threshold, want)
		}
	}
	if searches != 1 {
		t.Errorf("the search has %d records", searches)
	}
}

// checkCaseRecords checks what records say of a case beside their heads: all name the same subject, with its score.
func checkCaseRecords(t *testing.T, records []*entry.Record, caseID string) {
	t.Helper()
	is := parsed(t, caseID)
	var first entry.Candidate
	intents, opens, found := 0, 0, false
	for _, e := range records {
		switch {
		case e.Kind == entry.Intent && strings.HasSuffix(e.Operation, "/verdict"):
			intents++
			if e.Case != is || e.Verdict == 0 {
				t.Errorf("the intent of a verdict is %+v", e)
			}
			continue
		case e.Kind == entry.Intent && strings.HasSuffix(e.Operation, "/face/verify"):
			opens++
			found = found || e.Case == is
			continue
		case e.Kind == entry.Request && e.Reason == "Doubtful" && opens == 0:
			t.Errorf("%s opened a case without an intent before it", e.Operation)
		case e.Kind != entry.Request || e.Operation == "POST /v1.1/subjects" || !strings.Contains(e.Operation, "/cases") && e.Reason != "Doubtful":
			continue
		}
		if wants := e.Operation != "GET /v1.1/cases"; wants != (e.Case == is) {
			t.Errorf("%s is about the case %v", e.Operation, e.Case)
		}
		named := e.List()
		if e.Status == http.StatusBadRequest {
			continue
		}
		if len(named) != 1 || named[0].Score == 0 || first != (entry.Candidate{}) && named[0] != first {
			t.Errorf("%s names %v, want %v", e.Operation, named, first)
			continue
		}
		first = named[0]
	}
	if intents != 3 || opens != 3 || !found {
		t.Errorf("%d intents of verdicts and %d of cases, the case is among them: %v; want 3 and 3", intents, opens, found)
	}
}
