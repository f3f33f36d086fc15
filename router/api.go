package router

import (
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/settings"
)

// Limits of requests (interface, §8; decisions of docs/interface.md).
const (
	// ThresholdMax is the largest score and search threshold.
	ThresholdMax = settings.ThresholdMax
	// ThresholdDefault is the search and verify threshold when none is given.
	ThresholdDefault = settings.ThresholdDefault
	// SearchLimitMax is the most events in the answer to a search.
	SearchLimitMax = settings.SearchLimitMax
	// SearchLimitDefault is the limit of a search that gives none.
	SearchLimitDefault = 10
	// MatchLengthMax is the most subjects in a page of matches, MatchLengthDefault those of
	// a request that gives none, and MatchEventsMax the most events shown of each.
	MatchLengthMax     = 200
	MatchLengthDefault = 50
	MatchEventsMax     = 50
	// ListLengthMax is the most entries in a page of the subject list.
	ListLengthMax = 1000
	// ExtractLimitDefault is the most faces in the answer to an extraction that
	// gives no limit.
	ExtractLimitDefault = 10
)

// Registration asks for a new subject with one event.
type Registration struct {
	Access Access
	Write  Write
	// Image is an image file in a format that package engine reads.
	Image []byte
	// Tags are names of the gallery's tags. nil means none.
	Tags []string
	// Note is what the subject gets beside its face.
	Note Note
	// Expires is when the event expires, or the zero time for never. It has a resolution of
	// milliseconds.
	Expires time.Time
}

// Registered is the outcome of a registration or update.
type Registered struct {
	Subject    id.Subject
	Event      id.Event
	Attributes engine.Attributes
	// Ignored are other faces on the image, the largest first.
	Ignored []engine.Attributes
	// Known, with the error Duplicate, is the enrolled subject that the enrolment guard found. Event and
	// Ignored are not set then.
	Known *Known
}

// Known is whom an enrolment guard found, and how it searched.
type Known struct {
	Score, Threshold int
	Searched
}

// Committed names a place in the log of a group at or after the entry of a write. Index is 0 while
// some nodes don't know it.
type Committed struct {
	Group id.Shard
	Index uint64
}

// Order is the direction of a listing by last update.
type Order uint8

// The orders of a listing. Descending is the exact reverse of ascending.
const (
	Ascending Order = iota
	Descending
	// CursorOrder is the order of the cursor, and Ascending without one.
	CursorOrder
)

// Page asks for a window of a gallery's subject list.
type Page struct {
	Start  int // index of the first entry, from 0
	Length int // 1 to ListLengthMax
	Order  Order
	// After is the Next of an earlier page, or empty. With it Start is 0.
	After string
}

// Entry is one line of the subject list. It is an event, active or deleted.
type Entry struct {
	Subject id.Subject
	Event   id.Event
	Deleted bool
	// Updated has a resolution of milliseconds.
	Updated time.Time
	// Note is the subject's, or nil. A deleted entry has none.
	Note *Note
	// Expires is when an active event expires, of itself or by its gallery's retention. It
	// is zero for never.
	Expires time.Time
}

// Listing is a page of the subject list.
type Listing struct {
	Entries []Entry
	// Total counts all entries of the gallery, deleted ones included.
	Total int
	// Next is the cursor of the page that follows, or empty if none does.
	Next string
}

// Seen is a face that an extraction found.
type Seen struct {
	Attributes engine.Attributes
	Measures   engine.Measures
	Defects    []engine.Defect
}

// SubjectVerification asks whether the probe shows a subject.
type SubjectVerification struct {
	Access  Access
	Subject id.Subject
	Probe   Probe
	// Doubt, unless nil, opens a case if the score is in the application's review band.
	Doubt *Doubt
}

// Doubt is a wish for a case.
type Doubt struct {
	// Operation is that of Write: a repeated request has the same case.
	Operation id.Operation
	// Reference is the client's name of the probe, or empty.
	Reference string
	// Opens is called with the case before it is opened. Its error is that of the verification.
	Opens func(id.UUID) error
}

// Verification is the outcome of a verification that reached its threshold.
type Verification struct {
	Score int
	// Case is that of a score in the review band, or zero.
	Case id.UUID
	// Note is that of the subject, or nil.
	Note *Note
	// Ignored are other faces on the probe, the largest first.
	Ignored []engine.Attributes
	// Probes has each photo of a probe of several. Ignored has no faces then.
	Probes []Probed
}

// NewGallery describes a gallery to create, with its first application.
type NewGallery struct {
	settings.Gallery
	MinimumQuality float64 // of the application
}

// Gallery is a gallery as the tenant management interface shows it.
type Gallery struct {
	ID id.Gallery
	settings.Gallery
	// ETag is a hash of the settings.
	ETag string
	// Count is the number of active events. Only Router.Gallery and
	// Router.Galleries set it.
	Count int
	// Applications are in order of creation. Router.Gallery sets all of them,
	// Router.CreateGallery only the new one.
	Applications []Application
}

// NewApplication describes an application to create.
type NewApplication struct {
	Gallery id.Gallery
	settings.Application
}

// Application is the access of clients to a gallery, through an API key.
type Application struct {
	ID      id.Application
	Gallery id.Gallery
	// APIKey is a secret of 40 characters [A-Za-z0-9].
	APIKey string
	settings.Application
	// ETag is a hash of the settings.
	ETag string
}
