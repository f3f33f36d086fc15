package client

import (
	"context"
	"iter"
	"net/http"
	"strconv"
	"strings"
)

// BeginDuplicates starts a job that looks for pairs of subjects with at least this score, nil for 9000,
// and returns the job's id. The gallery's former report is dropped. It needs the role admin.
func (c *Client) BeginDuplicates(ctx context.Context, threshold *int) (batchID string, err error) {
	body := struct {
		Threshold *int `json:"threshold,omitzero"`
	}{threshold}
	got, err := call[struct {
		BatchID string `json:"batchId"`
	}](ctx, c, request{method: http.MethodPost, path: "/v1.1/jobs/duplicates", body: body, repeat: repeatKeyed})
	return got.BatchID, err
}

// Duplicates returns how far the comparison is and, after its end, a page of at most length pairs: the
// first one, or the one that after, the Next of another one, names. length 0 means 1000.
func (c *Client) Duplicates(ctx context.Context, after string, length int) (Duplicates, error) {
	var query []string // in the order of the keys
	if after != "" {
		query = append(query, "after="+escape(after, ""))
	}
	if length > 0 {
		query = append(query, "length="+strconv.Itoa(length))
	}
	return call[Duplicates](ctx, c, request{method: http.MethodGet, path: "/v1.1/jobs/duplicates", query: strings.Join(query, "&")})
}

// Pairs iterates over all pairs of a comparison that has ended, group by group. It ends after an error.
func (c *Client) Pairs(ctx context.Context) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		for after := ""; ; {
			page, err := c.Duplicates(ctx, after, 0)
			if err != nil {
				yield(Pair{}, err)
				return
			}
			for _, p := range page.Pairs {
				if !yield(p, nil) {
					return
				}
			}
			if after = page.Next; after == "" {
				return
			}
		}
	}
}

// EndDuplicates drops the report, and ends a comparison under way.
func (c *Client) EndDuplicates(ctx context.Context) error {
	return run(ctx, c, request{method: http.MethodDelete, path: "/v1.1/jobs/duplicates", repeat: repeatGone})
}

// Different says which subjects of a gallery are different people. It needs the role admin.
type Different struct{ c *Client }

// Different returns the pairs of different subjects.
func (c *Client) Different() Different { return Different{c} }

// Set notes that two subjects, by their ids or External, are different people. Reports leave their
// pair out.
func (d Different) Set(ctx context.Context, a, b string) error {
	return run(ctx, d.c, request{method: http.MethodPut, path: join("v1.1", "jobs", "duplicates", "different", a, b), repeat: repeatFreely})
}

// Unset takes that back.
func (d Different) Unset(ctx context.Context, a, b string) error {
	return run(ctx, d.c, request{method: http.MethodDelete, path: join("v1.1", "jobs", "duplicates", "different", a, b), repeat: repeatGone})
}

// All iterates over the pairs. It ends after an error.
func (d Different) All(ctx context.Context) iter.Seq2[DifferentPair, error] {
	return func(yield func(DifferentPair, error) bool) {
		for query := ""; ; {
			page, err := call[DifferentPairs](ctx, d.c, request{method: http.MethodGet, path: "/v1.1/jobs/duplicates/different", query: query})
			if err != nil {
				yield(DifferentPair{}, err)
				return
			}
			for _, p := range page.Pairs {
				if !yield(p, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query = "after=" + escape(page.Next, "")
		}
	}
}
