package nodetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"facet/internal/id"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/router"
)

// Client speaks the signed HTTPS interface to the nodes of a Cluster.
type Client struct {
	// APIKey is sent when it is not empty.
	APIKey string

	signer sigv4.Signer
	http   *http.Client
	pause  time.Duration // before each request
}

// Answer is the answer of a node.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Decode decodes the answer's JSON into v.
func (a Answer) Decode(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.Body, v); err != nil {
		t.Fatalf("read answer %d %s: %v", a.Status, a.Body, err)
	}
}

// Client creates a tenant and returns a client with its keys.
func (c *Cluster) Client(tenant string) *Client {
	c.t.Helper()
	client, _ := c.ClientOf(tenant)
	return client
}

// ClientOf does the work of Client and also returns the tenant's id.
func (c *Cluster) ClientOf(tenant string) (*Client, id.Tenant) {
	c.t.Helper()
	key, err := c.CreateTenant(tenant)
	must(c.t, err)
	return c.open(sigv4.Signer{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: key.ID, SecretKey: key.Secret}), key.Tenant
}

// As returns a client with the keys of a client of another cluster that this one trusts.
func (c *Cluster) As(other *Client) *Client {
	c.t.Helper()
	client := c.open(other.signer)
	client.APIKey = other.APIKey
	return client
}

// Keyed returns a client that signs with another key.
func (c *Client) Keyed(key router.AccessKey) *Client {
	again := *c
	again.signer.AccessKey, again.signer.SecretKey = key.ID, key.Secret
	return &again
}

// open returns a client that trusts the cluster's authority, on the machine of clients.
func (c *Cluster) open(signer sigv4.Signer) *Client {
	c.t.Helper()
	roots := x509.NewCertPool()
	pem, err := os.ReadFile(c.Roots)
	must(c.t, err)
	if !roots.AppendCertsFromPEM(pem) {
		c.t.Fatal("the authority's certificate can't be read")
	}
	var network transport.Network = transport.OS{}
	client := &Client{signer: signer}
	if c.Network != nil {
		network, client.pause = c.Network.Host(ClientHost), requestTime
	}
	client.http = httpOver(network, client.pause, &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})
	c.t.Cleanup(client.Close)
	return client
}

// httpOver returns a client over a network, which pauses before it opens a connection.
func httpOver(network transport.Network, pause time.Duration, config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			time.Sleep(pause)
			return network.Dial(ctx, address)
		},
		TLSClientConfig: config, MaxIdleConnsPerHost: 64, DisableCompression: true,
	}}
}

// HTTP returns a client on a node's network that keeps no connection open.
func (m *Member) HTTP(config *tls.Config) *http.Client {
	client := httpOver(m.Config.Network, requestTime, config)
	client.Transport.(*http.Transport).DisableKeepAlives = true
	return client
}

// Dial opens a TLS connection to an address on a node's network.
func (m *Member) Dial(ctx context.Context, address string, config *tls.Config) (*tls.Conn, error) {
	raw, err := m.Config.Network.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// CreateTenant creates a tenant through the first running node.
func (c *Cluster) CreateTenant(name string) (router.AccessKey, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, m := range c.Nodes {
		if m.Node != nil {
			return m.Node.Router().CreateTenant(ctx, name)
		}
	}
	return router.AccessKey{}, errors.New("no node runs")
}

// Request is a signed request that can be sent more than once, byte for byte.
type Request struct {
	Method, Target string
	Body           []byte
	Headers        []sigv4.Header
}

// Sign returns a signed request with a JSON body. A nil body is none, bytes are sent
// as they are.
func (c *Client) Sign(base, method, target string, body any, headers ...sigv4.Header) (Request, error) {
	r := Request{Method: method, Target: target}
	if body != nil {
		raw, ok := body.([]byte)
		if !ok {
			var err error
			if raw, err = json.Marshal(body); err != nil {
				return r, fmt.Errorf("encode body: %w", err)
			}
		}
		r.Body = raw
		headers = append(headers, sigv4.Header{Name: "content-type", Value: "application/json"})
	}
	if c.APIKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: c.APIKey})
	}
	host := strings.TrimPrefix(base, "https://")
	signed := append([]sigv4.Header{{Name: "host", Value: host}}, headers...)
	more, err := c.signer.Sign(sigv4.Request{Method: method, Target: target, Headers: signed}, sha256.Sum256(r.Body), time.Now())
	r.Headers = append(headers, more...)
	return r, err
}

// Send sends a request to base.
func (c *Client) Send(ctx context.Context, base string, r Request) (Answer, error) {
	return c.SendAs(ctx, base, base, r)
}

// SendAs sends a request that was signed for another base.
func (c *Client) SendAs(ctx context.Context, base, signed string, r Request) (Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, base+r.Target, bytes.NewReader(r.Body))
	if err != nil {
		return Answer{}, fmt.Errorf("make request: %w", err)
	}
	req.Host = strings.TrimPrefix(signed, "https://")
	for _, h := range r.Headers {
		req.Header.Set(h.Name, h.Value)
	}
	time.Sleep(c.pause)
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return Answer{Status: res.StatusCode, Header: res.Header, Body: body}, err
}

// Call signs and sends a request. If no answer comes, it ends the test.
func (c *Client) Call(t testing.TB, base, method, target string, body any, headers ...sigv4.Header) Answer {
	t.Helper()
	r, err := c.Sign(base, method, target, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Send(t.Context(), base, r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	return a
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Image returns an image of HashExtractor in base64, as bodies contain it.
func Image(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
