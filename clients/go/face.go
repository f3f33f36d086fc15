package client

import (
	"context"
	"net/http"
)

// ThresholdDefault is the score from which two faces are taken for one person
// unless something else is asked for: a false match rate of 1 in 100,000.
const ThresholdDefault = 7000

// Extract finds the faces of a photo, largest first. limit bounds them; 0 is 10,
// and more than 20 are never found.
func (c *Client) Extract(ctx context.Context, image []byte, limit int) ([]Attributes, error) {
	return extract(ctx, c, "/v1.1/face/extract", struct {
		Faces []byte `json:"faces"`
		Limit int    `json:"limit,omitzero"`
	}{notNil(image), limit})
}

func extract(ctx context.Context, c *Client, path string, body any) ([]Attributes, error) {
	got, err := call[struct {
		Faces []struct {
			Attributes Attributes `json:"attributes"`
		} `json:"faces"`
	}](ctx, c, request{method: http.MethodPost, path: path, body: body})
	if err != nil {
		return nil, err
	}
	faces := make([]Attributes, len(got.Faces))
	for i, f := range got.Faces {
		faces[i] = f.Attributes
	}
	return faces, nil
}

// notNil keeps encoding/json from writing null for an empty image.
func notNil(image []byte) []byte {
	if image == nil {
		return []byte{}
	}
	return image
}

type verifyBody struct {
	ID    string `json:"id,omitzero"`
	Face  []byte `json:"face,omitzero"`
	Probe []byte `json:"probe"`
}

type scored struct {
	Score int `json:"score"`
}

// VerifySubject gives the score of a probe against the subject's best event. Below
// the application's threshold it is ErrNotVerified; the *Error has the score.
func (c *Client) VerifySubject(ctx context.Context, subjectID string, probe []byte) (score int, err error) {
	got, err := call[scored](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{ID: subjectID, Probe: notNil(probe)}})
	return got.Score, err
}

// VerifyFaces gives the score of two photos with one face each. Below the default
// threshold it is ErrNotVerified; the *Error has the score. It needs no API key.
func (c *Client) VerifyFaces(ctx context.Context, face, probe []byte) (score int, err error) {
	got, err := call[scored](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{Face: notNil(face), Probe: notNil(probe)}})
	return got.Score, err
}

// SearchQuery asks whom a photo shows.
type SearchQuery struct {
	// Probe is an image file with one face.
	Probe []byte
	// Threshold is the lowest score of a candidate, 0 to 9999; nil is 7000.
	Threshold *int
	// Limit bounds the events in the answer, 1 to 50; 0 is 10. In version 1 it
	// bounds the subjects.
	Limit int
	// Tags, if any, leave only events with at least one of them.
	Tags []string
}

type searchBody struct {
	Probe     []byte   `json:"probe"`
	Threshold *int     `json:"threshold,omitzero"`
	Limit     int      `json:"limit,omitzero"`
	Tags      []string `json:"tags,omitzero"`
}

// Scored is an event and how alike it is to the probe.
type Scored struct {
	ID    string `json:"id"`
	Score int    `json:"score"`
}

// Candidate is a subject that a probe may show; Score is that of its best event.
// In version 1 there are no events.
type Candidate struct {
	ID     string   `json:"id"`
	Score  int      `json:"score"`
	Events []Scored `json:"events"`
}

// SearchResult has the candidates, best first, and what is known of the probe.
type SearchResult struct {
	Candidates []Candidate `json:"candidates"`
	Attributes Attributes  `json:"attributes"`
}

// Search compares a probe with the whole gallery. That nobody is found is no error.
func (c *Client) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	return call[SearchResult](ctx, c, request{
		method: http.MethodPost, path: "/v1.1/face/search", empty: "candidates",
		body: searchBody{notNil(q.Probe), q.Threshold, q.Limit, q.Tags},
	})
}
