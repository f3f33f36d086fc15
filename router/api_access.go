package router

import "facet/internal/id"

// Access is the application that a request's API key names, and its gallery.
type Access struct {
	Tenant      id.Tenant
	Application id.Application
	Gallery     id.Gallery
	// Role and Holder are those of the access key. The zero Role is RoleAdmin.
	Role   Role
	Holder string
	SearchBounds
}

// SearchBounds are what an application lets a search ask. 0 is no bound.
type SearchBounds struct {
	SearchThresholdMin, SearchLimitMax int
}

// Write identifies one write of a client, so that its retry has no second effect.
type Write struct {
	// Operation is a hash of the tenant, the application, the method, the path, and
	// either the Idempotency-Key or the request's signature.
	Operation id.Operation
	// Request is a hash of the body. A second request with the same key and another
	// body is refused.
	Request [16]byte
	// Keyed reports whether the client sent an Idempotency-Key. The outcome is then
	// remembered for 24 hours, otherwise for 10 minutes.
	Keyed bool
}
