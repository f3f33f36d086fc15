package router

import (
	"time"

	"facet/internal/id"
	"facet/shard/job"
)

const (
	// CasesMax is the most cases of a gallery. The case that was closed first gives way to a new one; open
	// ones never do.
	CasesMax = job.CasesMax
	// CasesPageMax is the most cases in a page.
	CasesPageMax = 1000
	// CasesPageDefault is the most cases in a page whose request has no length.
	CasesPageDefault = 100
)

// Case is a doubtful verification.
type Case struct {
	job.Case
	// Note is that of the subject, or nil.
	Note *Note
	// PhotoLink is that of the gallery.
	PhotoLink string
}

// CaseFilter selects cases by whether they are open.
type CaseFilter uint8

// The filters of cases.
const (
	AnyCase CaseFilter = iota
	OpenCases
	ClosedCases
)

// CaseQuery asks for a page of the cases of a gallery.
type CaseQuery struct {
	Filter CaseFilter
	// After is the Next of an earlier page, or empty.
	After  string
	Length int // 1 to CasesPageMax
}

// CasePage is a page of cases, the oldest first.
type CasePage struct {
	Cases []Case
	// Total counts all cases that the filter admits, those of subjects that went since included.
	Total     int
	Next      string
	PhotoLink string // that of the gallery
}

// Decision is the verdict of the holder of an access key, who may have no name.
type Decision struct {
	Case   id.UUID
	Same   bool
	Holder string
}

// StateName returns the name of a state of cases.
func StateName(s job.CaseState) string {
	names := [...]string{"open", "same", "different", "disputed", "expired", "erased"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// CaseFigures are the figures of the cases of the galleries whose homes a node leads.
type CaseFigures struct {
	Open   int
	Oldest time.Time // of those that are open, or zero
	// Closed counts cases by the state in which they were closed on this node.
	Closed map[string]uint64
	// Dropped counts doubtful verifications of this node that got no case.
	Dropped uint64
}
