package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"facet/node"
	"facet/node/sigv4"
)

const (
	// tryTimeout bounds one try of a request, retryPause is between tries.
	tryTimeout = 6 * time.Second
	retryPause = 50 * time.Millisecond
	answerMax  = 64 << 20
)

// client speaks the signed interface to the nodes in turn.
type client struct {
	cluster *cluster
	signer  sigv4.Signer
	http    *http.Client
	apiKey  string
	skew    time.Duration // of the client's clock
}

// answer is what a node answered, and when the try that brought it began.
type answer struct {
	status int
	body   []byte
	began  time.Time
	node   string
	// tries counts the ones before that had no answer, or one of 5xx or 429, and
	// refused those of 5xx or 429.
	tries, refused int
}

func (c *cluster) client(ctx context.Context, tenant string) (*client, error) {
	out, err := c.facet(ctx, "tenant", "create", tenant, "--json")
	if err != nil {
		return nil, err
	}
	var keys node.TenantKeys
	if err := json.Unmarshal(out, &keys); err != nil {
		return nil, fmt.Errorf("read the tenant's keys: %w", err)
	}
	pem, err := os.ReadFile(c.certs.CA())
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		if c.lan == nil {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
		return c.lan.Dial(ctx, clientHost, address)
	}
	return &client{
		cluster: c,
		signer: sigv4.Signer{
			Region: node.RegionDefault, Service: node.ServiceDefault, AccessKey: keys.AccessKey, SecretKey: keys.SecretKey,
		},
		http: &http.Client{Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 64, TLSHandshakeTimeout: tryTimeout,
		}},
	}, nil
}

// gallery makes a gallery and gives a client with its key.
func (c *client) gallery(ctx context.Context, name string, size int) (*client, error) {
	a, err := c.do(ctx, 0, request{method: http.MethodPost, target: "/api/galleries", body: map[string]any{
		"name": name, "description": "", "size": size, "faceMinimumQualityScore": 0.45,
	}})
	if err != nil {
		return nil, err
	}
	var made struct{ APIKey string }
	if err := json.Unmarshal(a.body, &made); err != nil || made.APIKey == "" {
		return nil, fmt.Errorf("make gallery %s: %d %s: %w", name, a.status, a.body, err)
	}
	of := *c
	of.apiKey = made.APIKey
	return &of, nil
}

// request is one request; key is its Idempotency-Key, empty for none.
type request struct {
	method, target string
	body           any
	key            string
}

// errGivenUp says that the time was over before there was an answer.
var errGivenUp = errors.New("no answer before the end")

// do sends a request to nodes in turn, beginning with the first-th, until one
// answers with other than 429 and 5xx.
func (c *client) do(ctx context.Context, first int, r request) (answer, error) {
	var last error
	refused := 0
	for try := 0; ; try++ {
		nodes := c.cluster.members()
		p := nodes[(first+try)%len(nodes)]
		a, err := c.try(ctx, p, r)
		if err == nil && a.status < http.StatusInternalServerError && a.status != http.StatusTooManyRequests {
			a.tries, a.refused = try, refused
			return a, nil
		}
		if err == nil {
			refused++
			err = fmt.Errorf("%d %s", a.status, bytes.TrimSpace(a.body))
		}
		last = fmt.Errorf("%s: %w", p.name, err)
		select {
		case <-ctx.Done():
			return answer{}, fmt.Errorf("%s %s: %w: %w", r.method, r.target, errGivenUp, last)
		case <-time.After(retryPause):
		}
	}
}

func (c *client) try(ctx context.Context, p *process, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	body, err := []byte(nil), error(nil)
	host := strings.TrimPrefix(p.url(), "https://")
	headers := []sigv4.Header{{Name: "host", Value: host}}
	if r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return answer{}, fmt.Errorf("encode: %w", err)
		}
		headers = append(headers, sigv4.Header{Name: "content-type", Value: "application/json"})
	}
	if c.apiKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: c.apiKey})
	}
	if r.key != "" {
		headers = append(headers, sigv4.Header{Name: "idempotency-key", Value: r.key})
	}
	signed, err := c.signer.Sign(sigv4.Request{Method: r.method, Target: r.target, Headers: headers}, sha256.Sum256(body), time.Now().Add(c.skew))
	if err != nil {
		return answer{}, err
	}
	began := time.Now()
	q, err := http.NewRequestWithContext(ctx, r.method, p.url()+r.target, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	for _, h := range append(headers[1:], signed...) {
		q.Header.Set(h.Name, h.Value)
	}
	res, err := c.http.Do(q)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return answer{}, fmt.Errorf("read the answer: %w", err)
	}
	return answer{status: res.StatusCode, body: text, began: began, node: p.name}, nil
}

// clock asks a node with a clock that is nearly five minutes off, which is accepted,
// and a little more, which is not. It is not judged while the node does not answer.
func (c *client) clock(p *process) error {
	const margin = 5 * time.Second // for the way, and for whole seconds
	for _, try := range []struct {
		skew   time.Duration
		status int
	}{
		{5*time.Minute - margin, http.StatusOK},
		{margin - 5*time.Minute, http.StatusOK},
		{5*time.Minute + margin, http.StatusForbidden},
		{-margin - 5*time.Minute, http.StatusForbidden},
	} {
		of := *c
		of.skew = try.skew
		a, err := of.try(context.Background(), p, request{method: http.MethodGet, target: "/v1.1/tags"})
		if err == nil && a.status < http.StatusInternalServerError && a.status != try.status {
			return fmt.Errorf("%s answered %d %s to a clock that is %s off, want %d", p.name, a.status, a.body, try.skew, try.status)
		}
	}
	return nil
}
