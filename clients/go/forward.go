package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Forwarded is a request of the interface that another program made, for example a page of
// `facet console`.
type Forwarded struct {
	Method string
	URL    *url.URL // its path and query
	// APIKey, IdempotencyKey, ContentType and Purpose are the headers that count. An empty APIKey or
	// Purpose is the client's own, an empty IdempotencyKey of a write a random one.
	APIKey, IdempotencyKey, ContentType, Purpose string
	Body                                         []byte
}

// Reply is the answer of a node to a Forwarded.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// Forward signs a request and sends it like the client's other methods, until a node gives a
// final answer. An answer that refuses is no error. A deletion that an earlier try carried out
// is 204.
func (c *Client) Forward(ctx context.Context, f Forwarded) (Reply, error) {
	r, err := f.request()
	if err != nil {
		return Reply{}, err
	}
	if f.APIKey != "" {
		c = c.WithAPIKey(f.APIKey)
	}
	if f.IdempotencyKey != "" {
		ctx = WithIdempotencyKey(ctx, f.IdempotencyKey)
	}
	if f.Purpose != "" {
		ctx = WithPurpose(ctx, f.Purpose)
	}
	a, err := c.do(ctx, r)
	_, refused := errors.AsType[*Error](err)
	switch {
	case err != nil && (!refused || a.status == 0):
		return Reply{}, err
	case err == nil && a.status/100 != 2: // as an earlier try left it
		return Reply{Status: http.StatusNoContent, Header: a.header}, nil
	default:
		return Reply{a.status, a.header, a.body}, nil
	}
}

// request returns f in the form in which the client signs.
func (f Forwarded) request() (request, error) {
	r := request{method: f.Method, raw: f.Body, portal: strings.HasPrefix(f.URL.Path, "/api/"), header: http.Header{}}
	if len(f.Body) > 0 && f.ContentType != "" {
		r.header.Set("Content-Type", f.ContentType)
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(f.URL.EscapedPath(), "/"), "/") {
		plain, err := url.PathUnescape(part)
		if err != nil {
			return request{}, fmt.Errorf("forward %s: %w", f.Method, err)
		}
		r.path += join(plain)
	}
	query, err := url.ParseQuery(f.URL.RawQuery)
	if err != nil {
		return request{}, fmt.Errorf("forward %s %s: %w", f.Method, r.path, err)
	}
	var pairs []string
	for name, values := range query {
		for _, v := range values {
			pairs = append(pairs, escape(name, "")+"="+escape(v, ""))
		}
	}
	slices.Sort(pairs)
	r.query = strings.Join(pairs, "&")
	switch {
	case f.Method == http.MethodGet:
		r.repeat = repeatFreely
	case f.Method == http.MethodDelete:
		r.repeat = repeatGone
	case f.Method == http.MethodPost && strings.HasPrefix(r.path, "/v1.1/tags/"):
		r.repeat = repeatThere
	default:
		r.repeat = repeatKeyed
	}
	return r, nil
}
