package httpapi

import (
	"context"

	"facet/engine"
	"facet/internal/id"
	"facet/router"
)

// Service carries out requests; *router.Router is the real one. An error that
// the client is to be told about is a *router.Error; any other is a fault of the
// service. Images and texts given to it are its own.
type Service interface {
	// AccessKey finds an access key; unknown (and confirmed to be) is NotFound.
	AccessKey(ctx context.Context, accessKey string) (router.AccessKey, error)
	// Access finds what an API key of tenant names; unknown or another tenant's
	// is Forbidden.
	Access(ctx context.Context, tenant id.Tenant, apiKey string) (router.Access, error)

	Register(ctx context.Context, r router.Registration) (router.Registered, error)
	Unregister(ctx context.Context, access router.Access, subject id.Subject) error
	Subjects(ctx context.Context, access router.Access, p router.Page) (router.Listing, error)

	// Extract gives at most limit faces, largest first.
	Extract(ctx context.Context, image []byte, limit int) ([]engine.Attributes, error)
	VerifyFace(ctx context.Context, face, probe []byte) (router.Verification, error)
	VerifySubject(ctx context.Context, access router.Access, subject id.Subject, probe []byte) (router.Verification, error)
	Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error)

	CreateGallery(ctx context.Context, tenant id.Tenant, w router.Write, g router.NewGallery) (router.Gallery, error)
	Galleries(ctx context.Context, tenant id.Tenant) ([]router.Gallery, error)
	Gallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) (router.Gallery, error)
	CreateApplication(ctx context.Context, tenant id.Tenant, w router.Write, a router.NewApplication) (router.Application, error)
	Applications(ctx context.Context, tenant id.Tenant) ([]router.Application, error)
	Application(ctx context.Context, tenant id.Tenant, application id.Application) (router.Application, error)
}
