package httpapi

import (
	"context"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/router"
	"facet/shard/job"
)

// caseBody is a doubtful verification that people review. An open one shows the caller's own verdict only, so
// that the second person decides alone.
type caseBody struct {
	ID          string        `json:"id"`
	State       string        `json:"state"`
	Application string        `json:"applicationId"`
	Subject     string        `json:"subjectId,omitzero"`
	ExternalID  string        `json:"externalId,omitzero"`
	Score       int           `json:"score,omitzero"`
	Threshold   int           `json:"threshold,omitzero"`
	Reference   string        `json:"reference,omitzero"`
	Created     string        `json:"created"`
	Expires     string        `json:"expires,omitzero"`
	Closed      string        `json:"closed,omitzero"`
	Needed      int           `json:"verdictsNeeded,omitzero"`
	Given       int           `json:"verdictsGiven"`
	Verdicts    []verdictBody `json:"verdicts"`
	PhotoLink   string        `json:"photoLink,omitzero"` // not in a list
}

type verdictBody struct {
	Verdict string `json:"verdict"`
	Holder  string `json:"holder,omitzero"`
	Time    string `json:"time"`
}

// casesBody is a page of cases.
type casesBody struct {
	Total     int        `json:"total"`
	Cases     []caseBody `json:"cases"`
	PhotoLink string     `json:"photoLink,omitzero"`
	Next      string     `json:"next,omitzero"`
}

// The verdicts.
const (
	verdictSame      = "same"
	verdictDifferent = "different"
)

func verdictText(same bool) string {
	if same {
		return verdictSame
	}
	return verdictDifferent
}

// wireCase returns the wire form of a case for the caller. The request's record names the subject.
func (c *call) wireCase(k router.Case) caseBody {
	body := caseBody{
		ID: k.ID.String(), State: router.StateName(k.State), Application: k.Application.String(), Score: k.Score, Threshold: k.Threshold,
		Reference: k.Reference, Created: wireTime(millis(k.Created)), Needed: k.Needed, Given: len(k.Verdicts), Verdicts: []verdictBody{},
		PhotoLink: k.PhotoLink,
	}
	if !k.Subject.IsZero() {
		body.Subject = k.Subject.String()
		c.found(k.Subject, k.Score, k.Note)
	}
	if k.Note != nil {
		body.ExternalID = k.Note.ExternalID
	}
	open := k.State == job.CaseOpen
	if open {
		body.Expires = wireTime(millis(k.Expires))
	} else {
		body.Closed = wireTime(millis(k.Closed))
	}
	for _, v := range k.Verdicts {
		if !open || v.Holder == c.key.Holder {
			body.Verdicts = append(body.Verdicts, verdictBody{verdictText(v.Same), v.Holder, wireTime(millis(v.Time))})
		}
	}
	return body
}

// doubt reads what a case is opened with, if the verification is doubtful. Version 1 knows no reviews.
func (c *call) doubt(o object) (*router.Doubt, error) {
	if c.version == v1 {
		return nil, nil
	}
	reference, _, err := o.text("reference", router.ExternalIDMax)
	if err == nil && reference != "" {
		err = checkReference(reference)
	}
	if err != nil {
		return nil, err
	}
	w, err := c.write()
	return &router.Doubt{Operation: w.Operation, Reference: reference, Opens: func(name id.UUID) error {
		c.trail.review = name
		return c.intent()
	}}, err
}

// checkReference returns an error when a client may not name a probe so. A reference has the form of an external id,
// because both get into the gallery's photo link. People see it beside their verdict, so nothing in it may lead
// elsewhere or change the order of what they read.
func checkReference(reference string) error {
	err := checkTagName("reference", reference)
	if err == nil && strings.ContainsFunc(reference, func(c rune) bool { return unicode.Is(unicode.Bidi_Control, c) }) {
		err = invalid("", "reference must have no characters that change the direction of text.")
	}
	if err == nil && path.Clean("/"+reference) != "/"+reference {
		err = invalid("", `reference must have no part that is empty, "." or "..".`)
	}
	return err
}

// getCases serves GET cases: query state, after and length.
func getCases(ctx context.Context, c *call) (answer, error) {
	all, err := parameters(c.query)
	if err != nil {
		return answer{}, err
	}
	q := router.CaseQuery{After: all["after"]}
	if q.Length, err = wholeParameter(all, "length", bounds{1, router.CasesPageMax}, router.CasesPageDefault); err != nil {
		return answer{}, err
	}
	if _, follows := all["after"]; follows && q.After == "" {
		return answer{}, invalid("", "after must not be empty; leave it out for the first page.")
	}
	switch state, given := all["state"]; {
	case state == "open":
		q.Filter = router.OpenCases
	case state == "closed":
		q.Filter = router.ClosedCases
	case given:
		return answer{}, invalid("", "state must be open or closed.")
	}
	page, err := c.service.Cases(ctx, c.access, q)
	if err != nil {
		return answer{}, err
	}
	body := casesBody{Total: page.Total, Cases: make([]caseBody, len(page.Cases)), PhotoLink: page.PhotoLink, Next: page.Next}
	for i, k := range page.Cases {
		k.PhotoLink = ""
		body.Cases[i] = c.wireCase(k)
	}
	return answer{fasthttp.StatusOK, body}, nil
}

// caseID returns the id of the case that a path names.
func (c *call) caseID() (caseID id.UUID, err error) {
	return parseID(c.parameters[0], "", "There is no case with this id.")
}

// getCase serves GET cases/{caseId}.
func getCase(ctx context.Context, c *call) (answer, error) {
	caseID, err := c.caseID()
	if err != nil {
		return answer{}, err
	}
	k, err := c.service.Case(ctx, c.access, caseID)
	return answer{fasthttp.StatusOK, c.wireCase(k)}, err
}

// putVerdict serves PUT cases/{caseId}/verdict: body verdict.
func putVerdict(ctx context.Context, c *call) (answer, error) {
	caseID, err := c.caseID()
	if err != nil {
		return answer{}, err
	}
	o, err := readObject(c.body.bytes, "verdict")
	if err != nil {
		return answer{}, err
	}
	verdict, _, err := o.text("verdict", len(verdictDifferent))
	if err != nil {
		return answer{}, err
	}
	if verdict != verdictSame && verdict != verdictDifferent {
		return answer{}, invalid("", "verdict must be same or different.")
	}
	c.trail.verdict = entry.Different
	if verdict == verdictSame {
		c.trail.verdict = entry.Same
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	k, err := service.Decide(ctx, c.access, router.Decision{Case: caseID, Same: verdict == verdictSame, Holder: c.key.Holder})
	return answer{fasthttp.StatusOK, c.wireCase(k)}, err
}

// millis returns the time of milliseconds since 1970.
func millis(ms int64) time.Time { return time.UnixMilli(ms) }

// reviewThreshold reads the lowest score of an application's review band. 0 is none.
func (o object) reviewThreshold() (int, error) {
	return o.integer("reviewThreshold", bounds{0, router.ThresholdMax}, 0)
}

// reviewVerdicts reads how many verdicts close a case, or 0.
func (o object) reviewVerdicts() (int, error) {
	return o.integer("reviewVerdicts", bounds{1, router.ReviewVerdictsMax}, 0)
}

// reviewDays reads how long cases stay open, or 0.
func (o object) reviewDays() (int, error) {
	return o.integer("reviewDays", bounds{1, router.ReviewDaysMax}, 0)
}
