package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// Client calls a cluster. It is safe for concurrent use.
type Client struct {
	*core
	apiKey   string
	receipts receipts
}

// core is the part that a Client shares with the clients of its WithAPIKey.
type core struct {
	cfg          Config
	base, portal *nodes
	signer       signer
	http         *http.Client
}

// WithAPIKey returns a client for the application with this API key. It shares the
// connections of c.
func (c *Client) WithAPIKey(apiKey string) *Client { return &Client{core: c.core, apiKey: apiKey} }

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// idempotencyKey is the key of the value in the context.
type idempotencyKey struct{}

// WithIdempotencyKey returns a context that makes a write use key instead of a
// random Idempotency-Key. Then another process can repeat the write after this one
// has died. A key has 1 to 128 printable ASCII characters. Use it for one write
// only.
func WithIdempotencyKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, idempotencyKey{}, key)
}

// repeat is the meaning of a second try of a request when the outcome of the first is
// unknown.
type repeat uint8

const (
	repeatFreely repeat = iota // a read
	repeatKeyed                // the Idempotency-Key makes it one write
	repeatGone                 // a deletion: now "not found" is success
	repeatThere                // a creation: now "duplicate" is success
)

// request is one call of an operation of the interface.
type request struct {
	method string
	path   string // percent-encoded
	query  string // percent-encoded, sorted by key
	body   any    // nil for none
	// raw is a body that is sent as it is, instead of body. header has headers for it.
	raw    []byte
	header http.Header
	portal bool
	repeat repeat
	// empty is the member that a 404 contains when the answer is an empty list.
	// Other 404s are errors.
	empty string
	// gone makes ErrNotFound count as success.
	gone bool
}

// answer is the answer of a node.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// join returns the path of plain segments, percent-encoded.
func join(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + escape(s, ""))
	}
	return b.String()
}

// call carries out r and reads the answer's body as a T. An answer without a body
// is the zero T.
func call[T any](ctx context.Context, c *Client, r request) (T, error) {
	var out T
	a, err := c.do(ctx, r)
	if err != nil || len(a.body) == 0 {
		return out, err
	}
	if err := json.Unmarshal(a.body, &out); err != nil {
		return out, fmt.Errorf("%s %s: read the answer: %w", r.method, r.path, err)
	}
	if settings, ok := any(&out).(interface{ setETag(tag string) }); ok {
		settings.setETag(a.header.Get("ETag"))
	}
	return out, nil
}

// run is call for operations without an answer.
func run(ctx context.Context, c *Client, r request) error {
	_, err := c.do(ctx, r)
	return err
}

// do sends r until it gets a final answer. The answer of a refusal comes with its *Error.
func (c *Client) do(ctx context.Context, r request) (answer, error) {
	operation := r.method + " " + r.path
	header, body, err := c.prepare(ctx, r)
	if err != nil {
		return answer{}, fmt.Errorf("%s: %w", operation, err)
	}
	list := c.base
	if r.portal {
		list = c.portal
	}
	doubt := false // an earlier try may have had its effect
	for try := 1; ; try++ {
		node := list.pick(time.Now())
		a, err := c.try(ctx, list.hosts[node], r, header.Clone(), body)
		var refused *Error
		if err == nil {
			list.wake(node)
			refused = a.refusal(operation, r)
			if refused == nil || doubt && r.doneBefore(refused) {
				return a, nil
			}
			if !refused.again() {
				return a, refused
			}
			err = refused
		} else {
			if ctx.Err() == nil { // the caller's end says nothing about the node
				list.rest(node, time.Now())
			}
			err = fmt.Errorf("%s: %w", operation, err)
		}
		doubt = doubt || refused == nil || refused.Status >= http.StatusInternalServerError
		if try == c.cfg.Tries || ctx.Err() != nil || stranger(err) && try >= len(list.hosts) {
			return a, err
		}
		if waited := pause(ctx, delay(try, refused, len(list.hosts))); waited != nil {
			return a, errors.Join(err, waited)
		}
	}
}

// prepare returns the headers and the body that all tries share.
func (c *Client) prepare(ctx context.Context, r request) (http.Header, []byte, error) {
	for s := range strings.SplitSeq(r.path[1:], "/") {
		if s == "" || s == "." || s == ".." { // the path would be another one
			return nil, nil, errors.New("an id or a name is empty or a dot segment")
		}
	}
	purpose, err := purposeOf(ctx, c.cfg.Purpose)
	if err != nil {
		return nil, nil, err
	}
	header := http.Header{"Accept": {"application/json"}}
	maps.Copy(header, r.header)
	if c.apiKey != "" && !r.portal {
		header.Set("X-Api-Key", c.apiKey)
	}
	if purpose != "" {
		header.Set("X-Purpose", purpose)
	}
	if r.repeat == repeatKeyed {
		key, ok := ctx.Value(idempotencyKey{}).(string)
		if !ok {
			key = rand.Text()
		}
		header.Set("Idempotency-Key", key)
	}
	if r.body == nil {
		return header, r.raw, nil
	}
	header.Set("Content-Type", "application/json")
	body, err := json.Marshal(r.body)
	return header, body, err
}

// try sends a request once. It signs each try, because host and date differ.
func (c *Client) try(ctx context.Context, host string, r request, header http.Header, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.TryTimeout)
	defer cancel()
	target := "https://" + host + r.path
	if r.query != "" {
		target += "?" + r.query
	}
	q, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	c.signer.sign(message{method: r.method, host: host, path: r.path, query: r.query, body: body}, header, time.Now())
	q.Header = header
	got, err := c.http.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, answerBytesMax+1))
	if err == nil && len(text) > answerBytesMax {
		err = fmt.Errorf("the answer has more than %d bytes", answerBytesMax)
	}
	return answer{got.StatusCode, got.Header, text}, err
}

// refusal returns the error in a, or nil for success.
func (a answer) refusal(operation string, r request) *Error {
	if a.status/100 == 2 {
		return nil
	}
	e := readError(operation, a)
	if r.gone && e.Is(ErrNotFound) {
		return nil
	}
	if a.status == http.StatusNotFound && r.empty != "" {
		var members map[string]json.RawMessage
		if json.Unmarshal(a.body, &members) == nil && members[r.empty] != nil {
			return nil
		}
	}
	return e
}

// stranger reports whether err rejects a node's certificate. Calling that node
// again is useless.
func stranger(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// doneBefore reports whether e shows that an earlier try had its effect.
func (r request) doneBefore(e *Error) bool {
	return r.repeat == repeatGone && e.Is(ErrNotFound) || r.repeat == repeatThere && e.Is(ErrDuplicate)
}

// delay returns the pause after a try. The service's Retry-After comes first. There
// is no pause while another node has not been called. Otherwise the pause doubles
// with each try, with a random part so that clients do not all return at once.
func delay(try int, refused *Error, nodes int) time.Duration {
	if refused != nil && refused.RetryAfter > 0 {
		return refused.RetryAfter
	}
	if refused == nil && try < nodes {
		return 0
	}
	most := min(backoffMin<<min(try, 10), backoffMax)
	return most/2 + mathrand.N(most/2)
}

// pause waits for d. It returns the context's error when that ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
