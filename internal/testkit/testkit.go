// Package testkit has the client with which tests and tools call a cluster. It signs
// requests, sends them and reads the answers. Package launch starts the clusters.
//
// Only tests, nodetest and the programs of scripts import it.
package testkit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"facet/node/sigv4"
)

const (
	// answerMax limits the body of an answer.
	answerMax = 64 << 20
	// idleConnections is how many connections to a node stay open.
	idleConnections = 64
)

// Client makes requests as the program of one tenant does. It is safe for concurrent
// use. A copy of a Client shares its connections.
type Client struct {
	Signer sigv4.Signer
	APIKey string        // sent and signed unless it is empty
	Skew   time.Duration // error of the client's clock
	HTTP   *http.Client
}

// Dial connects to host:port, as net.Dialer.DialContext does.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// New returns a client that trusts the authority with the certificate in caFile. A nil
// dial uses the network of the operating system.
func New(caFile string, signer sigv4.Signer, dial Dial) (*Client, error) {
	roots, err := Roots(caFile)
	if err != nil {
		return nil, err
	}
	return &Client{Signer: signer, HTTP: &http.Client{Transport: &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost: idleConnections, DisableCompression: true,
	}}}, nil
}

// Roots reads the certificates of an authority.
func Roots(caFile string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no certificate", caFile)
	}
	return roots, nil
}

// Signer returns a signer for the default region and service.
func Signer(accessKey, secretKey string) sigv4.Signer {
	return sigv4.Signer{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: accessKey, SecretKey: secretKey}
}

// Keyed returns a client that signs with another key.
func (c Client) Keyed(accessKey, secretKey string) *Client {
	c.Signer.AccessKey, c.Signer.SecretKey = accessKey, secretKey
	return &c
}

// Request is a signed request. It can be sent more than once, byte for byte.
type Request struct {
	Method, Target string
	Body           []byte
	Headers        []sigv4.Header // without host
}

// Body returns the bytes of a body. A nil body is none, bytes and strings stay as they
// are, and everything else becomes JSON.
func Body(body any) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	case string:
		return []byte(b), nil
	}
	text, err := json.Marshal(body)
	if err != nil {
		err = fmt.Errorf("encode body: %w", err)
	}
	return text, err
}

// Sign signs a request to base (https://host:port). The signature covers headers.
func (c *Client) Sign(base, method, target string, body any, headers ...sigv4.Header) (Request, error) {
	text, err := Body(body)
	if err != nil {
		return Request{}, err
	}
	if body != nil {
		headers = append(headers, sigv4.Header{Name: "content-type", Value: "application/json"})
	}
	headers, err = c.Headers(host(base), method, target, sha256.Sum256(text), headers...)
	return Request{Method: method, Target: target, Body: text, Headers: headers}, err
}

// Headers signs a request by the hash of its body. It returns all its headers but host.
func (c *Client) Headers(host, method, target string, hash [sha256.Size]byte, headers ...sigv4.Header) ([]sigv4.Header, error) {
	if c.APIKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: c.APIKey})
	}
	signed := append([]sigv4.Header{{Name: "host", Value: host}}, headers...)
	more, err := c.Signer.Sign(sigv4.Request{Method: method, Target: target, Headers: signed}, hash, time.Now().Add(c.Skew))
	return append(headers, more...), err
}

func host(base string) string { return strings.TrimPrefix(base, "https://") }

// Answer is the answer of a node.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Send sends a request to base.
func (c *Client) Send(ctx context.Context, base string, r Request) (Answer, error) {
	return c.SendAs(ctx, base, base, r)
}

// SendAs sends a request that was signed for another base.
func (c *Client) SendAs(ctx context.Context, base, signed string, r Request) (Answer, error) {
	return c.SendBody(ctx, base, signed, r, bytes.NewReader(r.Body))
}

// SendBody is SendAs with another reader of the body.
func (c *Client) SendBody(ctx context.Context, base, signed string, r Request, body io.Reader) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Target, body)
	if err != nil {
		return Answer{}, fmt.Errorf("make request: %w", err)
	}
	req.Host = host(signed)
	for _, h := range r.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		err = fmt.Errorf("read the answer: %w", err)
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: text}, err
}

// Do signs and sends a request.
func (c *Client) Do(ctx context.Context, base, method, target string, body any, headers ...sigv4.Header) (Answer, error) {
	r, err := c.Sign(base, method, target, body, headers...)
	if err != nil {
		return Answer{}, err
	}
	return c.Send(ctx, base, r)
}

// Call signs and sends a request. If no answer comes, it ends the test.
func (c *Client) Call(t testing.TB, base, method, target string, body any, headers ...sigv4.Header) Answer {
	t.Helper()
	a, err := c.Do(t.Context(), base, method, target, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return a
}

// Close closes idle connections.
func (c *Client) Close() { c.HTTP.CloseIdleConnections() }

// Decode decodes the answer's JSON into v.
func (a Answer) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("read answer %d %.500s: %v", a.Status, a.Body, err)
	}
}

// Want checks the status and decodes the body into v, unless v is nil.
func (a Answer) Want(t testing.TB, status int, v any) {
	t.Helper()
	if a.Status != status {
		t.Fatalf("got %d %.500s, want %d", a.Status, a.Body, status)
	}
	if v != nil {
		a.Decode(t, v)
	}
}

// WantRefused checks that the answer is an error of the interface's section 7.
func (a Answer) WantRefused(t testing.TB, errorType string, errorCode int) {
	t.Helper()
	var e struct {
		Message   string
		ErrorCode int
		ErrorType string
	}
	if err := json.Unmarshal(a.Body, &e); err != nil || a.Status != 400 || e.ErrorType != errorType || e.ErrorCode != errorCode || e.Message == "" {
		t.Errorf("got %d %.300s (%v), want 400 %s %d and a message", a.Status, a.Body, err, errorType, errorCode)
	}
}
