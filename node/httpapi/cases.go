package httpapi

import (
	"context"
	"path"
	"strings"
	"time"
	"unicode"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/router"
	"facet/shard/job"
)

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

// shows notes the subject of a case.
func (t *trail) shows(k router.Case) {
	if !k.Subject.IsZero() {
		t.finds(k.Subject, k.Score, k.Note)
	}
}

// wireCase returns the wire form of a case for the caller.
func (c *call) wireCase(k router.Case) answers.Case {
	body := answers.Case{
		ID: k.ID.String(), State: router.StateName(k.State), ApplicationID: k.Application.String(), Score: k.Score, Threshold: k.Threshold,
		Reference: k.Reference, Created: wireTime(millis(k.Created)), VerdictsNeeded: k.Needed, VerdictsGiven: len(k.Verdicts), Verdicts: []answers.Verdict{},
		PhotoLink: k.PhotoLink,
	}
	if !k.Subject.IsZero() {
		body.SubjectID = k.Subject.String()
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
			body.Verdicts = append(body.Verdicts, answers.Verdict{Verdict: verdictText(v.Same), Holder: v.Holder, Time: wireTime(millis(v.Time))})
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
	return &router.Doubt{Operation: w.Operation, Reference: reference, Opens: c.opens}, err
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
var getCases = reads(readCases, func(ctx context.Context, c *call, r Reader, q router.CaseQuery) (router.CasePage, error) {
	return r.Cases(ctx, c.access, q)
}, showCases, says[router.CaseQuery, router.CasePage]{told: func(t *trail, _ router.CaseQuery, page router.CasePage) {
	for _, k := range page.Cases {
		t.shows(k)
	}
}})

func readCases(_ context.Context, c *call) (q router.CaseQuery, err error) {
	all, err := parameters(c.query)
	if err != nil {
		return q, err
	}
	if q.Length, err = wholeParameter(all, "length", bounds{1, router.CasesPageMax}, router.CasesPageDefault); err != nil {
		return q, err
	}
	if q.After, _, err = after(all); err != nil {
		return q, err
	}
	switch state, given := all["state"]; {
	case state == "open":
		q.Filter = router.OpenCases
	case state == "closed":
		q.Filter = router.ClosedCases
	case given:
		err = invalid("", "state must be open or closed.")
	}
	return q, err
}

func showCases(c *call, _ router.CaseQuery, page router.CasePage) answer {
	body := answers.CasePage{Total: page.Total, Cases: make([]answers.Case, len(page.Cases)), PhotoLink: page.PhotoLink, Next: page.Next}
	for i, k := range page.Cases {
		k.PhotoLink = ""
		body.Cases[i] = c.wireCase(k)
	}
	return answer{fasthttp.StatusOK, body}
}

// caseOfPath returns the id of the case that the path names.
func caseOfPath(_ context.Context, c *call) (id.UUID, error) {
	return parseID(c.parameters[0], "", "There is no case with this id.")
}

// getCase serves GET cases/{caseId}.
var getCase = reads(caseOfPath, func(ctx context.Context, c *call, r Reader, caseID id.UUID) (router.Case, error) {
	return r.Case(ctx, c.access, caseID)
}, showCase, says[id.UUID, router.Case]{told: func(t *trail, _ id.UUID, k router.Case) { t.shows(k) }})

func showCase[Q any](c *call, _ Q, k router.Case) answer {
	return answer{fasthttp.StatusOK, c.wireCase(k)}
}

// putVerdict serves PUT cases/{caseId}/verdict: body verdict.
var putVerdict = changes(readVerdict, func(ctx context.Context, c *call, w Writer, d router.Decision) (router.Case, error) {
	return w.Decide(ctx, c.access, d)
}, showCase[router.Decision], says[router.Decision, router.Case]{
	asked: func(t *trail, d router.Decision) {
		switch {
		case d.Case.IsZero(): // the request was bad
		case d.Same:
			t.verdict = entry.Same
		default:
			t.verdict = entry.Different
		}
	},
	told: func(t *trail, _ router.Decision, k router.Case) { t.shows(k) },
})

func readVerdict(ctx context.Context, c *call) (router.Decision, error) {
	none := router.Decision{}
	caseID, err := caseOfPath(ctx, c)
	if err != nil {
		return none, err
	}
	o, err := readObject(c.body.bytes, "verdict")
	if err != nil {
		return none, err
	}
	text, _, err := o.text("verdict", len(verdictDifferent))
	if err != nil {
		return none, err
	}
	if text != verdictSame && text != verdictDifferent {
		return none, invalid("", "verdict must be same or different.")
	}
	return router.Decision{Case: caseID, Same: text == verdictSame, Holder: c.key.Holder}, nil
}

// millis returns the time of milliseconds since 1970.
func millis(ms int64) time.Time { return time.UnixMilli(ms) }
