package main

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
	"strconv"
	"strings"
	"time"

	"facet/node/sigv4"
	"facet/node/wire"
	"facet/scripts/chaos/traffic"
)

const (
	// tryTimeout is the longest that one try of a request may take.
	tryTimeout = 6 * time.Second
	answerMax  = 64 << 20
)

// client sends signed requests to the nodes in turn.
type client struct {
	cluster *cluster
	signer  sigv4.Signer
	http    *http.Client
	apiKey  string
	skew    time.Duration // error of the client's clock
}

func (c *cluster) client(ctx context.Context, tenant string) (*client, error) {
	out, err := c.facet(ctx, "tenant", "create", tenant, "--json")
	if err != nil {
		return nil, err
	}
	var keys wire.TenantKeys
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
			Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: keys.AccessKey, SecretKey: keys.SecretKey,
		},
		http: &http.Client{Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			MaxIdleConnsPerHost: 64, TLSHandshakeTimeout: tryTimeout,
		}},
	}, nil
}

// with returns the client with an API key.
func (c *client) with(apiKey string) traffic.Sender {
	of := *c
	of.apiKey = apiKey
	return &of
}

// Nodes returns the names of the nodes (traffic.Sender).
func (c *client) Nodes() (names []string) {
	for _, p := range c.cluster.members() {
		names = append(names, p.name)
	}
	return names
}

// Try sends a request to the n-th node (traffic.Sender).
func (c *client) Try(ctx context.Context, n int, r traffic.Request) (traffic.Answer, error) {
	nodes := c.cluster.members()
	p := nodes[n%len(nodes)]
	a, err := c.try(ctx, p, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.name, err)
	}
	return a, err
}

// gauge reads a metric without labels from a node's /metrics.
func (c *client) gauge(p *process, name string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+p.admin()+wire.PathMetrics, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	res, err := c.http.Do(q)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return 0, fmt.Errorf("read the metrics of %s: %w", p.name, err)
	}
	_, value, _ := strings.Cut(string(text), "\n"+name+" ")
	value, _, _ = strings.Cut(value, "\n")
	v, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%s answers %d and has no metric %s: %w", p.name, res.StatusCode, name, err)
	}
	return v, nil
}

func (c *client) try(ctx context.Context, p *process, r traffic.Request) (a traffic.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var body []byte
	headers := []sigv4.Header{{Name: "host", Value: strings.TrimPrefix(p.url(), "https://")}}
	if r.Body != nil {
		if body, err = json.Marshal(r.Body); err != nil {
			return a, fmt.Errorf("encode: %w", err)
		}
		headers = append(headers, sigv4.Header{Name: "content-type", Value: "application/json"})
	}
	if c.apiKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: c.apiKey})
	}
	if r.Key != "" {
		headers = append(headers, sigv4.Header{Name: "idempotency-key", Value: r.Key})
	}
	if r.Purpose != "" {
		headers = append(headers, sigv4.Header{Name: "x-purpose", Value: r.Purpose})
	}
	signed, err := c.signer.Sign(sigv4.Request{Method: r.Method, Target: r.Target, Headers: headers}, sha256.Sum256(body), time.Now().Add(c.skew))
	if err != nil {
		return a, err
	}
	q, err := http.NewRequestWithContext(ctx, r.Method, p.url()+r.Target, bytes.NewReader(body))
	if err != nil {
		return a, fmt.Errorf("make request: %w", err)
	}
	for _, h := range append(headers[1:], signed...) {
		q.Header.Set(h.Name, h.Value)
	}
	res, err := c.http.Do(q)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return a, fmt.Errorf("read the answer: %w", err)
	}
	return traffic.Answer{Status: res.StatusCode, Body: text, Node: p.name, ID: res.Header.Get("x-request-id")}, nil
}

// clockTries is how often clock repeats a request until an answer comes within half a
// second.
const clockTries = 5

// clock sends a node requests whose date is wrong. The node must accept a date that is
// a second less than five minutes off, and refuse one that is a second more. clock
// judges neither a node that does not answer, nor an answer that took over half a
// second, because dates have whole seconds.
func (c *client) clock(p *process) error {
	const edge = 5 * time.Minute
	for _, try := range []struct {
		skew   time.Duration
		status int
	}{
		{edge - time.Second, http.StatusOK},
		{time.Second - edge, http.StatusOK},
		{edge + time.Second, http.StatusForbidden},
		{-time.Second - edge, http.StatusForbidden},
	} {
		of := *c
		of.skew = try.skew
		for range clockTries {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			began := time.Now()
			a, err := of.try(context.Background(), p, traffic.Request{Method: http.MethodGet, Target: "/v1.1/health"})
			if err != nil || a.Status >= http.StatusInternalServerError {
				break
			}
			if time.Since(began) > time.Second/2 {
				continue
			}
			if a.Status != try.status {
				return fmt.Errorf("%s answered %d %s to a clock that is %s off, want %d", p.name, a.Status, a.Body, try.skew, try.status)
			}
			break
		}
	}
	return nil
}
