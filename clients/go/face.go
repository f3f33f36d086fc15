package client

import (
	"context"
	"iter"
	"net/http"
)

// ThresholdDefault is the default threshold. From this score on, two faces count as
// the same person, with a false match rate of 1 in 100,000.
const ThresholdDefault = 7000

// Extract returns the faces of a photo, largest first, and at most limit of them. A
// limit of 0 means 10. The service never finds more than 20.
func (c *Client) Extract(ctx context.Context, image []byte, limit int) ([]Attributes, error) {
	return extract(ctx, c, "/v1.1/face/extract", struct {
		Faces []byte `json:"faces"`
		Limit int    `json:"limit,omitzero"`
	}{notNil(image), limit})
}

// ExtractMeasured is Extract with measures and defects of each face.
func (c *Client) ExtractMeasured(ctx context.Context, image []byte, limit int) ([]SeenFace, error) {
	return seen(ctx, c, "/v1.1/face/extract", struct {
		Faces    []byte `json:"faces"`
		Limit    int    `json:"limit,omitzero"`
		Measures bool   `json:"measures"`
	}{notNil(image), limit, true})
}

func seen(ctx context.Context, c *Client, path string, body any) ([]SeenFace, error) {
	got, err := call[struct {
		Faces []SeenFace `json:"faces"`
	}](ctx, c, request{method: http.MethodPost, path: path, body: body})
	return got.Faces, err
}

func extract(ctx context.Context, c *Client, path string, body any) ([]Attributes, error) {
	list, err := seen(ctx, c, path, body)
	if err != nil {
		return nil, err
	}
	faces := make([]Attributes, len(list))
	for i, f := range list {
		faces[i] = f.Attributes
	}
	return faces, nil
}

// notNil makes encoding/json write "" and not null for a nil image.
func notNil(image []byte) []byte {
	if image == nil {
		return []byte{}
	}
	return image
}

type verifyBody struct {
	ID     string   `json:"id,omitzero"`
	Face   []byte   `json:"face,omitzero"`
	Probe  []byte   `json:"probe,omitzero"`
	Probes [][]byte `json:"probes,omitzero"`
	// Reference is the client's name of the probe.
	Reference string `json:"reference,omitzero"`
}

// VerifySubject returns the best score of a probe against the subject's events. The
// error is ErrNotVerified below the application's threshold. Its *Error contains
// the score.
func (c *Client) VerifySubject(ctx context.Context, subjectID string, probe []byte) (score int, err error) {
	got, err := c.Verify(ctx, subjectID, probe)
	return got.Score, err
}

// VerifyProbes does what Verify does, with 2 to 10 photos of one person instead of one. Each
// counts as a request. The error has the reason ProbesDisagree if two of them don't show the same
// person.
func (c *Client) VerifyProbes(ctx context.Context, subjectID string, probes [][]byte) (Verified, error) {
	return call[Verified](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{ID: subjectID, Probes: probes}})
}

// VerifyFaceProbes does what VerifyFaces does, with probes as in VerifyProbes.
func (c *Client) VerifyFaceProbes(ctx context.Context, face []byte, probes [][]byte) (Verified, error) {
	return call[Verified](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{Face: notNil(face), Probes: probes}})
}

// Verify does what VerifySubject does, and returns the subject, too.
func (c *Client) Verify(ctx context.Context, subjectID string, probe []byte) (Verified, error) {
	return call[Verified](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{ID: subjectID, Probe: notNil(probe)}})
}

// VerifyFaces returns the score of two photos with one face each. The error is
// ErrNotVerified below ThresholdDefault. Its *Error contains the score. The call
// needs no API key.
func (c *Client) VerifyFaces(ctx context.Context, face, probe []byte) (score int, err error) {
	got, err := call[Verified](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/verify", body: verifyBody{Face: notNil(face), Probe: notNil(probe)}})
	return got.Score, err
}

// SearchQuery asks which subjects a photo may show.
type SearchQuery struct {
	// Probe is an image file with one face.
	Probe []byte
	// Probes are 2 to 10 photos of one person, instead of Probe. Version 1 has none.
	Probes [][]byte
	// Threshold is the lowest score of a candidate, 0 to 9999. nil means 7000.
	Threshold *int
	// Limit is the most events in the answer, 1 to 50. 0 means 10. In version 1 it
	// limits the subjects.
	Limit int
	// Tags limits the search to events with at least one of them. None means all
	// events.
	Tags []string
	// Receipt asks for a receipt and checks it, also against those of this client's earlier searches. The
	// error is ErrReceipt if it does not hold. Version 1 has none.
	Receipt bool
}

type searchBody struct {
	Probe     []byte   `json:"probe,omitzero"`
	Probes    [][]byte `json:"probes,omitzero"`
	Threshold *int     `json:"threshold,omitzero"`
	Limit     int      `json:"limit,omitzero"`
	Tags      []string `json:"tags,omitzero"`
	Receipt   bool     `json:"receipt,omitzero"`
}

// MatchQuery asks for a page of all subjects that a photo may show.
type MatchQuery struct {
	// Probe is an image file with one face.
	Probe []byte
	// Threshold is the lowest score of a subject's best event, 0 to 9999. nil means 7000.
	Threshold *int
	// Length is the most subjects of the page, 1 to 200. 0 means 50.
	Length int
	// After is the Next of the page before. Empty asks for the first page.
	After string
}

type matchBody struct {
	Probe     []byte `json:"probe"`
	Threshold *int   `json:"threshold,omitzero"`
	Length    int    `json:"length,omitzero"`
	After     string `json:"after,omitzero"`
}

// MatchPage returns a page of the gallery's subjects at or above a threshold. A run of pages
// shows each of them that stays meanwhile exactly once. It needs the role admin.
func (c *Client) MatchPage(ctx context.Context, q MatchQuery) (MatchPage, error) {
	return call[MatchPage](ctx, c, request{
		method: http.MethodPost, path: "/v1.1/face/matches", body: matchBody{notNil(q.Probe), q.Threshold, q.Length, q.After},
	})
}

// Matches iterates over all subjects of the gallery at or above the threshold of q, page by page.
func (c *Client) Matches(ctx context.Context, q MatchQuery) iter.Seq2[Match, error] {
	return func(yield func(Match, error) bool) {
		for {
			page, err := c.MatchPage(ctx, q)
			if err != nil {
				yield(Match{}, err)
				return
			}
			for _, m := range page.Matches {
				if !yield(m, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.After = page.Next
		}
	}
}

// Search compares a probe with the whole gallery. An empty result is no error.
func (c *Client) Search(ctx context.Context, q SearchQuery) (SearchResult, error) {
	body := searchBody{Probes: q.Probes, Threshold: q.Threshold, Limit: q.Limit, Tags: q.Tags, Receipt: q.Receipt}
	if q.Probes == nil {
		body.Probe = notNil(q.Probe)
	}
	before := c.receipts.now()
	found, err := call[SearchResult](ctx, c, request{method: http.MethodPost, path: "/v1.1/face/search", empty: "candidates", body: body})
	if err == nil && q.Receipt {
		err = c.receipts.check(found.Receipt, len(q.Tags) > 0, before)
	}
	return found, err
}
