package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AuditFile returns a file of the tenant's audit log, by its path in C2SP's tlog-tiles: the
// checkpoint, a tile of hashes or a bundle of entries. Its log's verifier key has the path "key".
// It needs an access key of the role auditor. facet audit checks what the files say.
func (c *Client) AuditFile(ctx context.Context, path string) ([]byte, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: "/api/audit/" + path, portal: true, header: http.Header{"Accept": {"*/*"}}})
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// AuditQuery says which records of the audit log a page has. Zero fields say nothing.
type AuditQuery struct {
	// Operation is a part of the operation, such as "search".
	Operation, Holder, Key, Kind string
	Status                       int
	Since, Until                 time.Time
	// Before is the number of a record: Next of the page before. nil begins with the newest record.
	Before *uint64
	// Length is the most records, 1 to 200. 0 is 50.
	Length int
}

// UnmarshalJSON reads a record and keeps its text.
func (r *AuditRecord) UnmarshalJSON(b []byte) error {
	type plain AuditRecord
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	r.Text = slices.Clone(b)
	return nil
}

// Encode returns the query of a request for the page.
func (q AuditQuery) Encode() string {
	query := url.Values{}
	for name, value := range map[string]string{"operation": q.Operation, "holder": q.Holder, "key": q.Key, "kind": q.Kind} {
		if value != "" {
			query.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Status != 0 {
		query.Set("status", strconv.Itoa(q.Status))
	}
	if q.Before != nil {
		query.Set("before", strconv.FormatUint(*q.Before, 10))
	}
	if q.Length != 0 {
		query.Set("length", strconv.Itoa(q.Length))
	}
	return strings.ReplaceAll(query.Encode(), "+", "%20")
}

// AuditRecords returns a page of the tenant's audit log. It needs an access key of the role auditor or admin.
func (c *Client) AuditRecords(ctx context.Context, q AuditQuery) (page AuditPage, err error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: "/api/audit", query: q.Encode(), portal: true})
	if err != nil {
		return page, err
	}
	return page, json.Unmarshal(a.body, &page)
}
