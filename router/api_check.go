package router

import (
	"facet/engine"
	"facet/internal/id"
	"facet/router/listcheck"
)

// Limits and reasons of checks.
const (
	CheckRowsMax       = listcheck.RowsMax
	CheckRowMax        = 1<<31 - 1
	ReasonUnknownCheck = listcheck.ReasonUnknown
)

// CheckRow is a registration that is checked, with its number in the list.
type CheckRow struct {
	Registration // its Write is not used
	Check        id.UUID
	Row          int
	// Audited asks for a receipt, as in SearchQuery.
	Audited bool
}

// CheckedRow is what a registration would do.
type CheckedRow struct {
	Attributes engine.Attributes
	// Ignored are other faces on the photo.
	Ignored []engine.Attributes
	// Rows are other rows of the check that show the same person, best first.
	Rows []listcheck.Double
	// Candidates are the enrolled subjects at or above the application's guard threshold.
	Candidates []Candidate
	// Known is the subject that has the external id, or zero.
	Known id.Subject
	// Threshold is that of the search for Candidates.
	Threshold int
	Searched
}
