package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"time"
)

// BulkItem is one photo of a bulk registration. Filename is its name in the object
// store, Tags are tags of the gallery.
type BulkItem struct {
	Filename string   `json:"filename"`
	Tags     []string `json:"tags,omitzero"`
	// ExternalID and UserData are for the subject, as in Photo.
	ExternalID string          `json:"externalId,omitzero"`
	UserData   json.RawMessage `json:"userData,omitzero"`
	// Expires is when the event expires, or the zero time for never.
	Expires time.Time `json:"expires,omitzero"`
}

// Attributes parses AttributesJSON. ok is false when it is empty.
func (r BulkRecord) Attributes() (a Attributes, ok bool, err error) {
	if r.AttributesJSON == "" {
		return a, false, nil
	}
	if err := json.Unmarshal([]byte(r.AttributesJSON), &a); err != nil {
		return a, false, fmt.Errorf("read attributes of %s: %w", r.Filename, err)
	}
	return a, true, nil
}

// BulkRegister starts a job that registers up to 100,000 photos.
func (c *Client) BulkRegister(ctx context.Context, items []BulkItem) (batchID string, err error) {
	body := struct {
		Registrations []BulkItem `json:"registrations"`
	}{items}
	got, err := call[struct {
		BatchID string `json:"batchId"`
	}](ctx, c, request{method: http.MethodPost, path: "/v1.1/jobs/bulkregister", body: body, repeat: repeatKeyed})
	return got.BatchID, err
}

// Jobs returns the gallery's newest jobs, at most 1000, the one that changed last first.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	got, err := call[struct {
		Jobs []Job `json:"jobs"`
	}](ctx, c, request{method: http.MethodGet, path: "/v1.1/jobs/bulkregister"})
	return got.Jobs, err
}

// BulkProgress returns a page of a job's records: the first one, or the one that
// pagingID names.
func (c *Client) BulkProgress(ctx context.Context, batchID, pagingID string) (BulkPage, error) {
	path := join("v1.1", "jobs", "bulkregister", batchID)
	if pagingID != "" {
		path += join(pagingID)
	}
	return call[BulkPage](ctx, c, request{method: http.MethodGet, path: path})
}

// BulkRecords iterates over all records of a job. It ends after an error.
func (c *Client) BulkRecords(ctx context.Context, batchID string) iter.Seq2[BulkRecord, error] {
	return func(yield func(BulkRecord, error) bool) {
		for pagingID := ""; ; {
			page, err := c.BulkProgress(ctx, batchID, pagingID)
			if err != nil {
				yield(BulkRecord{}, err)
				return
			}
			for _, r := range page.Records {
				if !yield(r, nil) {
					return
				}
			}
			if pagingID = page.LastEvaluatedKey; pagingID == "" {
				return
			}
		}
	}
}
