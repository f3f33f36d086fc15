package client

import (
	"context"
	"net/http"
	"time"
)

// CompareFace is a photo with one face, or the token of an earlier one. One of the two is empty.
type CompareFace struct {
	Face  []byte `json:"face,omitzero"`
	Token string `json:"token,omitzero"`
}

// Comparison is the answer to Compare.
type Comparison struct {
	// Faces are in the order of the request.
	Faces []ComparedFace `json:"faces"`
	// Scores has the scores of each face with each one before it; Score finds one. It is nil if the
	// node had no time for them: send the tokens.
	Scores []*int `json:"scores"`
	// Expires is until when the tokens of this answer are taken. It is zero without one.
	Expires time.Time `json:"expires,omitzero"`
}

// ComparedFace is a photo of a comparison. It has Attributes and Token, or Error. Of a token all are
// empty.
type ComparedFace struct {
	Attributes *Attributes `json:"attributes,omitzero"`
	// Token stands for the photo in further comparisons.
	Token string     `json:"token,omitzero"`
	Error *FaceError `json:"error,omitzero"`
}

// FaceError is why a photo has no face to compare, in the words of an Error. With the Reason
// NotDone the node had no time: send the photo again.
type FaceError struct {
	Message string `json:"message"`
	Code    int    `json:"errorCode,omitzero"`
	Type    string `json:"errorType,omitzero"`
	Reason  string `json:"reason,omitzero"`
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
