package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/router"
)

// postChecks serves POST face/checks.
var postChecks = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) (id.UUID, error) {
	return r.BeginCheck(ctx, c.access)
}, func(_ *call, _ nothing, check id.UUID) answer {
	return answer{fasthttp.StatusCreated, answers.Check{ID: check.String(), RowsMax: router.CheckRowsMax}}
}, says[nothing, id.UUID]{})

// postCheck serves POST face/checks/{checkId}: the body of a registration, and row.
var postCheck = reads(readCheckRow, by(Reader.CheckRow), showChecked, says[router.CheckRow, router.CheckedRow]{
	asked: func(t *trail, r router.CheckRow) { t.photo(r.Image) },
	told: func(t *trail, _ router.CheckRow, checked router.CheckedRow) {
		t.asks(checked.Threshold, router.SearchLimitDefault)
		t.went(checked.Searched, checked.Attributes)
		for _, found := range checked.Candidates {
			t.finds(found.Subject, found.Score, found.Note)
		}
		t.names(checked.Known)
	},
})

func readCheckRow(_ context.Context, c *call) (router.CheckRow, error) {
	r := router.CheckRow{Registration: router.Registration{Access: c.access}, Audited: c.recorded()}
	o, err := readObject(c.body.bytes, "row", "face", "tags", "externalId", "userData", "expires")
	if err != nil {
		return r, err
	}
	if _, ok := o["row"]; !ok {
		return r, missing("row")
	}
	var errs [5]error
	r.Row, errs[0] = o.integer("row", bounds{0, router.CheckRowMax}, 0)
	r.Tags, errs[1] = o.tags()
	r.Note, errs[2] = o.note()
	r.Expires, _, errs[3] = o.expires()
	r.Image, errs[4] = o.image("face")
	if err := firstOf(errs[:]...); err != nil {
		return r, err
	}
	r.Check, err = parseCheck(c.parameters[0])
	return r, err
}

func showChecked(c *call, r router.CheckRow, checked router.CheckedRow) answer {
	text := answers.CheckedRow{
		Row: r.Row, Rows: make([]answers.ScoredRow, len(checked.Rows)), Candidates: make([]answers.Candidate, len(checked.Candidates)),
		Attributes: wireAttributes(checked.Attributes), IgnoredFaces: wireIgnored(checked.Ignored),
	}
	for i, d := range checked.Rows {
		text.Rows[i] = answers.ScoredRow{Row: int(d.Row), Score: d.Score}
	}
	for i, found := range checked.Candidates {
		text.Candidates[i] = wireCandidate(found, c.version)
	}
	if !checked.Known.IsZero() {
		text.Known = checked.Known.String()
	}
	return answer{fasthttp.StatusOK, text}
}

// deleteCheck serves DELETE face/checks/{checkId}.
var deleteCheck = reads(func(_ context.Context, c *call) (id.UUID, error) {
	return parseCheck(c.parameters[0])
}, func(ctx context.Context, c *call, r Reader, check id.UUID) (nothing, error) {
	return nothing{}, r.EndCheck(ctx, c.access, check)
}, showsStatus[id.UUID](fasthttp.StatusNoContent), says[id.UUID, nothing]{})

func parseCheck(text string) (id.UUID, error) {
	return parseID(text, router.ReasonUnknownCheck, "There is no check with this id.")
}
