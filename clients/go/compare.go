package client

import (
	"context"
	"net/http"
)

// CompareFace is a photo with one face, or the token of an earlier one. One of the two is empty.
type CompareFace struct {
	Face  []byte `json:"face,omitzero"`
	Token string `json:"token,omitzero"`
}

// Compare compares up to 200 photos, and with tokens up to 1,000 faces, with each other. The
// service keeps nothing of them. Each photo counts as a request. The call needs no API key.
func (c *Client) Compare(ctx context.Context, faces []CompareFace) (Comparison, error) {
	return call[Comparison](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/compare", body: struct {
		Faces []CompareFace `json:"faces"`
	}{faces}})
}

// Score returns the score of two faces of the request, or nil if one of them has none.
func (c Comparison) Score(i, j int) *int {
	if i < j {
		i, j = j, i
	}
	if at := i*(i-1)/2 + j; i != j && at < len(c.Scores) {
		return c.Scores[at]
	}
	return nil
}
