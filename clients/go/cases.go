package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
)

// The states of a Case, and the verdicts same and different.
const (
	CaseOpen      = "open"
	CaseSame      = "same"      // all verdicts say that both photos show one person
	CaseDifferent = "different" // all verdicts say that they don't
	CaseDisputed  = "disputed"  // two people disagree
	CaseExpired   = "expired"   // the verdicts did not come in time
	CaseErased    = "erased"    // the subject is gone
)

// CaseQuery asks for a page of cases.
type CaseQuery struct {
	// State is "open" or "closed"; "" means all.
	State string
	// Length is the most cases, 1 to 1000. 0 means 100.
	Length int
	// After is the Next of the page before.
	After string
}

// Cases are the cases of a gallery. Its methods but Verify need the role admin or reviewer.
type Cases struct{ c *Client }

// CasesOf returns the cases of the gallery of c.
func CasesOf(c *Client) Cases { return Cases{c} }

// Verify does what Client.Verify does, and names the probe, like no external id, for people who review a
// doubtful score.
func (k Cases) Verify(ctx context.Context, subjectID string, probe []byte, reference string) (Verified, error) {
	return call[Verified](ctx, k.c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{ID: subjectID, Probe: notNil(probe), Reference: reference}})
}

// Page returns a page of the cases of the gallery.
func (k Cases) Page(ctx context.Context, q CaseQuery) (CasePage, error) {
	query := ""
	add := func(name, value string) {
		if query != "" {
			query += "&"
		}
		query += name + "=" + escape(value, "")
	}
	if q.After != "" {
		add("after", q.After)
	}
	if q.Length != 0 {
		add("length", strconv.Itoa(q.Length))
	}
	if q.State != "" {
		add("state", q.State)
	}
	return call[CasePage](ctx, k.c, request{method: http.MethodGet, path: "/v1.1/cases", query: query})
}

// All iterates over the cases of a state, the oldest first. It ends after an error.
func (k Cases) All(ctx context.Context, state string) iter.Seq2[Case, error] {
	return func(yield func(Case, error) bool) {
		for q := (CaseQuery{State: state}); ; {
			page, err := k.Page(ctx, q)
			if err != nil {
				yield(Case{}, err)
				return
			}
			for _, each := range page.Cases {
				if !yield(each, nil) {
					return
				}
			}
			if q.After = page.Next; page.Next == "" {
				return
			}
		}
	}
}

// Find returns one case.
func (k Cases) Find(ctx context.Context, caseID string) (Case, error) {
	return call[Case](ctx, k.c, request{method: http.MethodGet, path: join("v1.1", "cases", caseID)})
}

// Decide says whether both photos of a case show one person, CaseSame or CaseDifferent, and returns the case.
func (k Cases) Decide(ctx context.Context, caseID, verdict string) (Case, error) {
	body := map[string]string{"verdict": verdict}
	return call[Case](ctx, k.c, request{method: http.MethodPut, path: join("v1.1", "cases", caseID, "verdict"), body: body, repeat: repeatFreely})
}
