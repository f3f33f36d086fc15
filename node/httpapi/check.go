package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// checkBody is a new check.
type checkBody struct {
	ID      string `json:"id"`
	RowsMax int    `json:"rowsMax"`
}

// checkedBody is what the registration of a row would do. Known is the subject that has the
// external id.
type checkedBody struct {
	Row        int            `json:"row"`
	Rows       []checkedRow   `json:"rows"`
	Candidates []candidate    `json:"candidates"`
	Known      string         `json:"known,omitzero"`
	Attributes attributesBody `json:"attributes"`
	Ignored    []ignoredBody  `json:"ignoredFaces,omitzero"`
}

// checkedRow is another row that shows the same person.
type checkedRow struct {
	Row   int `json:"row"`
	Score int `json:"score"`
}

// postChecks serves POST face/checks.
func postChecks(ctx context.Context, c *call) (answer, error) {
	check, err := c.service.BeginCheck(ctx, c.access)
	return answer{fasthttp.StatusCreated, checkBody{check.String(), router.CheckRowsMax}}, err
}

// postCheck serves POST face/checks/{checkId}: the body of a registration, and row.
func postCheck(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "row", "face", "tags", "externalId", "userData", "expires")
	if err != nil {
		return answer{}, err
	}
	if _, ok := o["row"]; !ok {
		return answer{}, missing("row")
	}
	r := router.CheckRow{Registration: router.Registration{Access: c.access}, Audited: c.recorded()}
	var errs [5]error
	r.Row, errs[0] = o.integer("row", bounds{0, router.CheckRowMax}, 0)
	r.Tags, errs[1] = o.tags()
	r.Note, errs[2] = o.note()
	r.Expires, _, errs[3] = o.expires()
	r.Image, errs[4] = o.image("face")
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	if r.Check, err = parseCheck(c.parameters[0]); err != nil {
		return answer{}, err
	}
	c.notePhotos(router.Probe{r.Image})
	checked, err := c.service.CheckRow(ctx, r)
	if err != nil {
		return answer{}, err
	}
	noteCheck(c, checked)
	text := checkedBody{
		Row: r.Row, Rows: make([]checkedRow, len(checked.Rows)), Candidates: make([]candidate, len(checked.Candidates)),
		Attributes: wireAttributes(checked.Attributes), Ignored: wireIgnored(checked.Ignored),
	}
	for i, d := range checked.Rows {
		text.Rows[i] = checkedRow{int(d.Row), d.Score}
	}
	for i, found := range checked.Candidates {
		text.Candidates[i] = wireCandidate(found, c.version)
	}
	if !checked.Known.IsZero() {
		text.Known = checked.Known.String()
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// noteCheck notes whom a check found.
func noteCheck(c *call, checked router.CheckedRow) {
	c.trail.asks(checked.Threshold, router.SearchLimitDefault)
	c.trail.went(checked.Searched, checked.Attributes)
	for _, found := range checked.Candidates {
		c.found(found.Subject, found.Score, found.Note)
	}
	if !checked.Known.IsZero() {
		c.trail.named = append(c.trail.named, checked.Known)
	}
}

// deleteCheck serves DELETE face/checks/{checkId}.
func deleteCheck(ctx context.Context, c *call) (answer, error) {
	check, err := parseCheck(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusNoContent}, c.service.EndCheck(ctx, c.access, check)
}

func parseCheck(text string) (id.UUID, error) {
	return parseID(text, router.ReasonUnknownCheck, "There is no check with this id.")
}
