package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"facet/internal/testkit"
	"facet/node/sigv4"
	"facet/node/wire"
	"facet/scripts/chaos/traffic"
)

// tryTimeout is the longest that one try of a request may take.
const tryTimeout = 6 * time.Second

// client sends signed requests to the nodes in turn.
type client struct {
	testkit.Client
	cluster *cluster
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
	var dial testkit.Dial
	if c.lan != nil {
		dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			return c.lan.Dial(ctx, clientHost, address)
		}
	}
	k, err := testkit.New(c.Certs.CA(), testkit.Signer(keys.AccessKey, keys.SecretKey), dial)
	if err != nil {
		return nil, err
	}
	k.HTTP.Transport.(*http.Transport).TLSHandshakeTimeout = tryTimeout
	return &client{*k, c}, nil
}

// with returns the client with an API key.
func (c *client) with(apiKey string) traffic.Sender {
	of := *c
	of.APIKey = apiKey
	return &of
}

// Nodes returns the names of the nodes (traffic.Sender).
func (c *client) Nodes() (names []string) {
	for _, p := range c.cluster.members() {
		names = append(names, p.Name)
	}
	return names
}

// Try sends a request to the n-th node (traffic.Sender).
func (c *client) Try(ctx context.Context, n int, r traffic.Request) (traffic.Answer, error) {
	nodes := c.cluster.members()
	p := nodes[n%len(nodes)]
	a, err := c.try(ctx, p, r)
	if err != nil {
		err = fmt.Errorf("%s: %w", p.Name, err)
	}
	return a, err
}

// gauge reads a metric without labels from a node's /metrics.
func (c *client) gauge(p *process, name string) (float64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tryTimeout)
	defer cancel()
	f, err := c.Scrape(ctx, p.Admin())
	if err != nil {
		return 0, err
	}
	v, ok := f[name]
	if !ok {
		return 0, fmt.Errorf("%s has no metric %s", p.Name, name)
	}
	return v, nil
}

func (c *client) try(ctx context.Context, p *process, r traffic.Request) (traffic.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	var headers []sigv4.Header
	for name, value := range map[string]string{"idempotency-key": r.Key, "x-purpose": r.Purpose} {
		if value != "" {
			headers = append(headers, sigv4.Header{Name: name, Value: value})
		}
	}
	a, err := c.Do(ctx, p.URL(), r.Method, r.Target, r.Body, headers...)
	return traffic.Answer{Status: a.Status, Body: a.Body, Node: p.Name, ID: a.Header.Get("x-request-id")}, err
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
		of.Skew = try.skew
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
				return fmt.Errorf("%s answered %d %s to a clock that is %s off, want %d", p.Name, a.Status, a.Body, try.skew, try.status)
			}
			break
		}
	}
	return nil
}
