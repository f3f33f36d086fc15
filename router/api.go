package router

import (
	"time"

	"facet/engine"
	"facet/engine/portrait"
	"facet/internal/id"
)

// Limits of requests (interface, §8; decisions of docs/interface.md).
const (
	// ThresholdMax is the largest score and search threshold.
	ThresholdMax = 9999
	// ThresholdDefault is the search and verify threshold when none is given.
	ThresholdDefault = 7000
	// SearchLimitMax is the most events in the answer to a search.
	SearchLimitMax = 50
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
	// QualityMin is the smallest minimum quality of an application.
	QualityMin = 0.45
	// GallerySizeMax is the largest size of a gallery.
	GallerySizeMax = 1<<31 - 1
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
	Name, Description string
	MinimumQuality    float64
	Size              int
	// RetentionDays is how long events stay after their last update, or 0 for ever.
	RetentionDays int
	// SubjectTemplates gives each subject with two or more events a template of its own, the mean of
	// theirs.
	SubjectTemplates bool
	// PhotoLink is a URL with {externalId}, where people see the photo of a subject, or empty.
	PhotoLink string
	// Purpose, LegalGround and Recipients are texts for the record of processing, or empty.
	Purpose, LegalGround, Recipients string
}

// Gallery is a gallery as the tenant management interface shows it.
type Gallery struct {
	ID                id.Gallery
	Name, Description string
	Size              int
	RetentionDays     int // 0 is for ever
	SubjectTemplates  bool
	PhotoLink         string // a URL with {externalId}, or empty
	// Purpose, LegalGround and Recipients are those of NewGallery.
	Purpose, LegalGround, Recipients string
	// ETag is a hash of the settings above.
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
	Gallery           id.Gallery
	Name, Description string
	MinimumQuality    float64
	// VerifyThreshold and GuardThreshold are 0 to ThresholdMax.
	VerifyThreshold, GuardThreshold int
	Guard                           bool
	// MultipleFaces is what happens to a photo with several faces.
	MultipleFaces portrait.Rule
	Review
	SearchBounds
}

// Review says which verifications of an application are doubtful, and who decides on them.
type Review struct {
	// ReviewThreshold is the lowest score of the review band. The band ends below the threshold of a match.
	// 0 is no band.
	ReviewThreshold int
	// ReviewVerdicts is how many verdicts close a case, and ReviewDays how long it stays open. 0 is the default.
	ReviewVerdicts, ReviewDays int
}

// Limits of reviews.
const (
	ReviewVerdictsDefault = 1
	ReviewVerdictsMax     = 2
	ReviewDaysDefault     = 7
	ReviewDaysMax         = 365
)

// Application is the access of clients to a gallery, through an API key.
type Application struct {
	ID      id.Application
	Gallery id.Gallery
	// APIKey is a secret of 40 characters [A-Za-z0-9].
	APIKey                          string
	Name, Description               string
	MinimumQuality                  float64
	VerifyThreshold, GuardThreshold int
	Guard                           bool
	MultipleFaces                   portrait.Rule
	Review
	SearchBounds
	// ETag is a hash of the settings.
	ETag string
}
