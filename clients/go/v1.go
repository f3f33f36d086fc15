package client

import (
	"context"
	"net/http"
)

// V1 calls version 1 of the interface, which has no events and no tags. New code
// should not use it.
type V1 struct{ c *Client }

// V1 returns the operations of version 1.
func (c *Client) V1() V1 { return V1{c} }

// Register creates a subject. The answer has no event id.
func (v V1) Register(ctx context.Context, image []byte) (Registered, error) {
	return call[Registered](ctx, v.c, request{method: http.MethodPost, path: "/v1/subjects", body: Photo{Image: image}.body(), repeat: repeatKeyed})
}

// Update replaces the subject's oldest event.
func (v V1) Update(ctx context.Context, subjectID string, image []byte) (Registered, error) {
	return call[Registered](ctx, v.c, request{method: http.MethodPut, path: join("v1", "subjects", subjectID), body: Photo{Image: image}.body(), repeat: repeatKeyed})
}

// Unregister removes a subject.
func (v V1) Unregister(ctx context.Context, subjectID string) error {
	return run(ctx, v.c, request{method: http.MethodDelete, path: join("v1", "subjects", subjectID), repeat: repeatGone})
}

// Extract returns the faces of a photo, at most 10. The error is ErrNotFound when
// there is none.
func (v V1) Extract(ctx context.Context, image []byte) ([]Attributes, error) {
	return extract(ctx, v.c, "/v1/face/extract", struct {
		Faces []byte `json:"faces"`
	}{notNil(image)})
}

// Search is Client.Search without events and tags.
func (v V1) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	return call[SearchResult](ctx, v.c, request{
		method: http.MethodPost, path: "/v1/face/search", empty: "candidates", body: searchBody{Probe: notNil(q.Probe), Threshold: q.Threshold, Limit: q.Limit},
	})
}

// Verify is Client.VerifySubject.
func (v V1) Verify(ctx context.Context, subjectID string, probe []byte) (score int, err error) {
	got, err := call[Verified](ctx, v.c, request{method: http.MethodPost, path: "/v1/face/verify", body: verifyBody{ID: subjectID, Probe: notNil(probe)}})
	return got.Score, err
}
