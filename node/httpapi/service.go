package httpapi

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/node/audit/reading"
	"facet/router"
)

// Service carries out requests; *routing.Router is the real one. An error meant for
// the client is a *router.Error; any other error is a fault of the service. A
// Service may keep the images and texts passed to it.
type Service interface {
	Reader
	Writer
}

// Reader carries out requests that change nothing that lasts. VerifySubject may open a case: see router.Doubt.
type Reader interface {
	reading.Service
	// AccessKey finds an access key. A key that is confirmed not to exist is
	// NotFound.
	AccessKey(ctx context.Context, accessKey string) (router.AccessKey, error)
	// SyncMetaSince catches up with the cluster's access keys, as AccessKey does for a
	// key that it does not find. It does nothing if that happened after since.
	SyncMetaSince(ctx context.Context, since time.Time) error
	// Access finds the gallery and application of an API key of the tenant. A key that
	// is unknown, or of another tenant, is Forbidden.
	Access(ctx context.Context, tenant id.Tenant, apiKey string) (router.Access, error)

	Subjects(ctx context.Context, access router.Access, p router.Page) (router.Listing, error)
	// SubjectWith finds the subject with an external id. No such subject is NotFound.
	// SubjectsWith returns the list of that subject's active events, or an empty one.
	SubjectWith(ctx context.Context, access router.Access, externalID string) (id.Subject, error)
	// SubjectToRename is SubjectWith for a write that changes the external id.
	SubjectToRename(ctx context.Context, access router.Access, externalID string, w router.Write) (id.Subject, error)
	SubjectsWith(ctx context.Context, access router.Access, externalID string) (router.Listing, error)
	// Expiring lists the events that expire before a time.
	Expiring(ctx context.Context, access router.Access, p router.ExpiringPage) (router.Listing, error)
	// Events returns the subject's active events. An unknown subject is NotFound.
	Events(ctx context.Context, access router.Access, subject id.Subject) (router.ActiveEvents, error)
	// Tags returns the names of the gallery's tags in order of creation.
	Tags(ctx context.Context, access router.Access) ([]string, error)

	// Extract returns at most limit faces, largest first.
	Extract(ctx context.Context, image []byte, limit int) ([]router.Seen, error)
	VerifyFace(ctx context.Context, face []byte, probe router.Probe) (router.Verification, error)
	// VerifySubject may open a case. It then returns its id beside the error.
	VerifySubject(ctx context.Context, q router.SubjectVerification) (router.Verification, error)
	// Compare compares photos and tokens of a tenant's earlier photos with each other.
	Compare(ctx context.Context, tenant id.Tenant, faces []router.CompareFace) (router.Comparison, error)
	Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error)
	Matches(ctx context.Context, q router.MatchQuery) (router.Matched, error)

	// BeginCheck starts a check of a list, in the memory of a node. CheckRow returns what the registration of one
	// of its rows would do. A check that is unknown, or of another application, is NotFound.
	BeginCheck(ctx context.Context, access router.Access) (id.UUID, error)
	CheckRow(ctx context.Context, c router.CheckRow) (router.CheckedRow, error)
	EndCheck(ctx context.Context, access router.Access, check id.UUID) error

	// BulkProgress returns a page of a job's records: the first one, or the one that pagingID names.
	BulkProgress(ctx context.Context, access router.Access, batch id.Batch, pagingID string) (router.BulkPage, error)
	// Jobs returns the newest jobs of the gallery.
	Jobs(ctx context.Context, access router.Access) ([]router.Job, error)
	// Duplicates returns how far the comparison of the gallery with itself is and, after its end, a page of the
	// pairs.
	Duplicates(ctx context.Context, access router.Access, after string, length int) (router.Duplicates, error)
	// Different lists the pairs of SetDifferent.
	Different(ctx context.Context, access router.Access, after string, length int) (list []router.DuplicatePair, total int, next string, err error)

	// Cases lists the cases of the gallery, and Case returns one.
	Cases(ctx context.Context, access router.Access, q router.CaseQuery) (router.CasePage, error)
	Case(ctx context.Context, access router.Access, caseID id.UUID) (router.Case, error)

	Galleries(ctx context.Context, tenant id.Tenant) ([]router.Gallery, error)
	Gallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) (router.Gallery, error)
	Applications(ctx context.Context, tenant id.Tenant) ([]router.Application, error)
	Application(ctx context.Context, tenant id.Tenant, application id.Application) (router.Application, error)
}

// Writer carries out writes. The do of changes gets it when the intent is recorded.
type Writer interface {
	// Register returns whom the enrolment guard found beside the error Duplicate.
	Register(ctx context.Context, r router.Registration) (router.Registered, error)
	// Unregister and UnregisterEvent carry out an operation, whose identity is new.
	Unregister(ctx context.Context, access router.Access, subject id.Subject, op id.Operation) (router.Committed, error)
	UnregisterEvent(ctx context.Context, access router.Access, subject id.Subject, event id.Event, op id.Operation) error
	// UpdateSubject replaces the subject's oldest active event.
	UpdateSubject(ctx context.Context, e router.Enrolment) (router.Registered, error)
	RegisterEvent(ctx context.Context, e router.Enrolment) (router.Registered, error)
	UpdateEvent(ctx context.Context, e router.Enrolment) (router.Registered, error)
	// Merge moves the events of one subject to another.
	Merge(ctx context.Context, m router.Merging) error

	// The names passed to these three methods fulfil the rules on names.
	CreateTag(ctx context.Context, access router.Access, name string) error
	RenameTag(ctx context.Context, access router.Access, from, to string) error
	DeleteTag(ctx context.Context, access router.Access, name string) error

	// BulkRegister starts a job.
	BulkRegister(ctx context.Context, b router.BulkRegistration) (id.Batch, error)
	// BeginDuplicates begins to compare the gallery with itself. EndDuplicates ends it and drops its report.
	BeginDuplicates(ctx context.Context, access router.Access, w router.Write, threshold int) (id.Batch, error)
	EndDuplicates(ctx context.Context, access router.Access) error
	// SetDifferent remembers that two subjects are different people, so that reports leave their pair out;
	// UnsetDifferent takes it back.
	SetDifferent(ctx context.Context, access router.Access, a, b id.Subject) error
	UnsetDifferent(ctx context.Context, access router.Access, a, b id.Subject) error
	// Decide gives a verdict on a case and returns the case afterwards.
	Decide(ctx context.Context, access router.Access, d router.Decision) (router.Case, error)

	CreateGallery(ctx context.Context, tenant id.Tenant, w router.Write, g router.NewGallery) (router.Gallery, error)
	UpdateGallery(ctx context.Context, tenant id.Tenant, w router.Write, gallery id.Gallery, p router.GalleryPatch) (router.Gallery, error)
	DeleteGallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) error
	CreateApplication(ctx context.Context, tenant id.Tenant, w router.Write, a router.NewApplication) (router.Application, error)
	UpdateApplication(
		ctx context.Context, tenant id.Tenant, w router.Write, application id.Application, p router.ApplicationPatch,
	) (router.Application, error)
	DeleteApplication(ctx context.Context, tenant id.Tenant, application id.Application) error
}
