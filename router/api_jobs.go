package router

import (
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/job"
)

// Limits of bulk registrations.
const (
	// BulkItemsMax is the most registrations of one job.
	BulkItemsMax = job.ItemsMax
	// BulkPageMax is the most records in a page.
	BulkPageMax = 1000
	// BulkFilenameMax is the most bytes of a filename.
	BulkFilenameMax = 1024
)

// ReasonNoStore is the reason of the error when a job is requested from a service
// without an object store.
const ReasonNoStore = "NoObjectStore"

// BulkItem is one file of the object store to register.
type BulkItem struct {
	Filename string
	Tags     []string // names of the gallery's tags
	Note     Note     // of the subject
	// Expires is when the event expires, or the zero time for never.
	Expires time.Time
}

// BulkRegistration describes a job to start.
type BulkRegistration struct {
	Access Access
	Write  Write
	Items  []BulkItem // 1 to BulkItemsMax
}

// BulkRecord is the state of one file of a job.
type BulkRecord struct {
	// ID identifies the record. It is not the id of a subject.
	ID       id.UUID
	Filename string
	Attempts int
	// Processed reports whether the work on the file has ended. Success then
	// reports whether it was registered, as Subject and Event. Otherwise Reason
	// explains the failure.
	Processed, Success bool
	Subject            id.Subject
	Event              id.Event
	Reason             string
	// Attributes is nil when no face was found.
	Attributes *engine.Attributes
	// Ignored are other faces on the file.
	Ignored []engine.Attributes
	// Note is that of the job's request.
	Note Note
}

// BulkPage is a page of a job's records, in the order of the request.
type BulkPage struct {
	Records []BulkRecord
	// Next is the paging id of the following page, URL-safe. It is empty on the
	// last page.
	Next string
}

// JobsMax is the most jobs in the answer to Jobs.
const JobsMax = 1000

// Job is how far a job is.
type Job struct {
	Batch       id.Batch
	Total, Done int
	LastUpdated time.Time
}
