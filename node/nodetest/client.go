package nodetest

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/testkit"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/router"
)

// Client speaks the signed HTTPS interface to the nodes of a Cluster.
type Client struct{ testkit.Client }

type (
	// Answer is the answer of a node.
	Answer = testkit.Answer
	// Request is a signed request that can be sent more than once, byte for byte.
	Request = testkit.Request
)

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
	must.Do(c.t, err)
	return c.open(testkit.Signer(key.ID, key.Secret)), key.Tenant
}

// As returns a client with the keys of a client of another cluster that this one trusts.
func (c *Cluster) As(other *Client) *Client {
	c.t.Helper()
	client := c.open(other.Signer)
	client.APIKey = other.APIKey
	return client
}

// Keyed returns a client that signs with another key.
func (c *Client) Keyed(key router.AccessKey) *Client {
	return &Client{*c.Client.Keyed(key.ID, key.Secret)}
}

// pausing waits before each request.
type pausing struct{ *http.Transport }

// RoundTrip makes a request after a pause.
func (p pausing) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(requestTime)
	return p.Transport.RoundTrip(r)
}

// open returns a client that trusts the cluster's authority, on the machine of clients.
func (c *Cluster) open(signer sigv4.Signer) *Client {
	c.t.Helper()
	var dial testkit.Dial
	if c.Network != nil {
		dial = c.Dial
	}
	client, err := testkit.New(c.Roots, signer, dial)
	must.Do(c.t, err)
	if c.Network != nil {
		client.HTTP.Transport = pausing{client.HTTP.Transport.(*http.Transport)}
	}
	c.t.Cleanup(client.Close)
	return &Client{*client}
}

// Dial connects to host:port on the network of a bubble, from the machine of clients.
func (c *Cluster) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return slowly(c.Network.Host(ClientHost))(ctx, network, address)
}

// slowly returns a dialer that pauses before it opens a connection over a network.
func slowly(network transport.Network) testkit.Dial {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		time.Sleep(requestTime)
		return network.Dial(ctx, address)
	}
}

// HTTP returns a client on a node's network that keeps no connection open.
func (m *Member) HTTP(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: slowly(m.Config.Network), TLSClientConfig: config, DisableKeepAlives: true, DisableCompression: true,
	}}
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range c.Nodes {
		if m.Node != nil {
			return m.Node.Router().CreateTenant(ctx, name)
		}
	}
	return router.AccessKey{}, errors.New("no node runs")
}

// Image returns an image of HashExtractor in base64, as bodies contain it.
func Image(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
