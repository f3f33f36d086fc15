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

// Case is a verification with a score in the review band of its application.
type Case struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	ApplicationID string `json:"applicationId"`
	SubjectID     string `json:"subjectId,omitzero"`
	ExternalID    string `json:"externalId,omitzero"`
	Score         int    `json:"score,omitzero"`
	Threshold     int    `json:"threshold,omitzero"`
	// Reference is the name of the probe (Cases.Verify).
	Reference string `json:"reference,omitzero"`
	Created   string `json:"created"`
	Expires   string `json:"expires,omitzero"` // of an open case
	Closed    string `json:"closed,omitzero"`
	// VerdictsNeeded is how many verdicts close the case. Verdicts are those of an open case that the
	// caller gave.
	VerdictsNeeded int       `json:"verdictsNeeded,omitzero"`
	VerdictsGiven  int       `json:"verdictsGiven"`
	Verdicts       []Verdict `json:"verdicts"`
	// PhotoLink is that of the gallery. It is not set in a list.
	PhotoLink string `json:"photoLink,omitzero"`
}

// Verdict is the opinion of a case that the holder of an access key has given.
type Verdict struct {
	Verdict string `json:"verdict"`
	Holder  string `json:"holder,omitzero"`
	Time    string `json:"time"`
}

// CaseQuery asks for a page of cases.
type CaseQuery struct {
	// State is "open" or "closed"; "" means all.
	State string
	// Length is the most cases, 1 to 1000. 0 means 100.
	Length int
	// After is the Next of the page before.
	After string
}

// CasePage is a page of cases, the oldest first. Total counts all that the query's State selects.
type CasePage struct {
	Total     int    `json:"total"`
	Cases     []Case `json:"cases"`
	PhotoLink string `json:"photoLink,omitzero"`
	Next      string `json:"next,omitzero"`
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
