package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"facet/cmd/facet/authority"
	"facet/node/cert"
	"facet/node/receipt"
	"facet/node/wire"
)

const (
	answerBytesMax = 16 << 20
	// dialTimeout is the longest time to connect to a node. It is short, so that
	// the next node is asked soon when one is down.
	dialTimeout   = 2 * time.Second
	answerTimeout = 30 * time.Second
)

// Target names the nodes to ask.
type Target struct {
	// Addresses are admin ports, host:port, in the order of attempts.
	Addresses []string
	// Certificates is a folder with ca.pem and a certificate with its key: admin.pem
	// and admin.key, or else status.pem and status.key.
	Certificates string
}

// Client calls the admin port of a cluster. It is safe for concurrent use.
type Client struct {
	addresses    []string
	certificates string
	http         *http.Client
}

// NewClient reads the administrator's certificate, or a read-only one.
func NewClient(t Target) (*Client, error) {
	if len(t.Addresses) == 0 {
		return nil, errors.New("no admin address is known: name a cluster with --profile or --admin")
	}
	files, err := authority.AdminFiles(t.Certificates)
	if err != nil {
		return nil, err
	}
	source, err := cert.Load(files, slog.New(slog.DiscardHandler))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s holds no administrator's certificate: name its folder with --certificates, or in the profile", t.Certificates)
	}
	if err != nil {
		return nil, fmt.Errorf("the administrator's certificate: %w", err)
	}
	return &Client{
		addresses: t.Addresses, certificates: t.Certificates,
		http: &http.Client{
			Timeout: answerTimeout,
			Transport: &http.Transport{
				DialContext:         Dial,
				TLSClientConfig:     source.AdminClientConfig(),
				TLSHandshakeTimeout: dialTimeout,
				MaxIdleConnsPerHost: 1,
				IdleConnTimeout:     time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Folder returns the folder with the certificates of the client and of the authority.
func (c *Client) Folder() string { return c.certificates }

// Status returns the state of the cluster as seen by the first node that answers.
func (c *Client) Status(ctx context.Context) (wire.Status, error) {
	var s wire.Status
	return s, c.any(ctx, call{method: http.MethodGet, path: wire.PathStatus, out: &s})
}

// OrderNode changes a node's state.
func (c *Client) OrderNode(ctx context.Context, o wire.Order) error {
	return c.any(ctx, call{method: http.MethodPost, path: wire.PathNodes, in: o})
}

// OrderShard moves the vote in a shard from one node to another.
func (c *Client) OrderShard(ctx context.Context, o wire.ShardOrder) error {
	return c.any(ctx, call{method: http.MethodPost, path: wire.PathShards, in: o})
}

// OrderReplicas sets the number of replicas that each shard should have.
func (c *Client) OrderReplicas(ctx context.Context, o wire.ReplicasOrder) (wire.ReplicasAnswer, error) {
	var a wire.ReplicasAnswer
	return a, c.any(ctx, call{method: http.MethodPost, path: wire.PathReplicas, in: o, out: &a})
}

// PutBack carries out a write again that members of a shard have lost, and returns its
// outcome.
func (c *Client) PutBack(ctx context.Context, o wire.WriteOrder) (string, error) {
	var a wire.WriteAnswer
	err := c.any(ctx, call{method: http.MethodPost, path: wire.PathWrites, in: o, out: &a})
	return a.Outcome, err
}

// Certificates makes a node request new certificates, or hands them to it.
func (c *Client) Certificates(ctx context.Context, o wire.CertificateOrder) (wire.CertificateAnswer, error) {
	var a wire.CertificateAnswer
	return a, c.any(ctx, call{method: http.MethodPost, path: wire.PathCertificates, in: o, out: &a})
}

// Rotate replaces a key that all nodes share.
func (c *Client) Rotate(ctx context.Context, ring string) (wire.RingAnswer, error) {
	var a wire.RingAnswer
	return a, c.any(ctx, call{method: http.MethodPost, path: wire.PathRings, in: wire.RingOrder{Ring: ring}, out: &a})
}

// Plan returns the moves with which the cluster will balance itself.
func (c *Client) Plan(ctx context.Context) (wire.Plan, error) {
	var p wire.Plan
	return p, c.any(ctx, call{method: http.MethodGet, path: wire.PathPlan, out: &p})
}

// CreateTenant creates a tenant with an admin access key.
func (c *Client) CreateTenant(ctx context.Context, name string) (wire.TenantKeys, error) {
	var keys wire.TenantKeys
	return keys, c.any(ctx, call{method: http.MethodPost, path: wire.PathTenants, in: wire.NewTenant{Name: name}, out: &keys})
}

// Tenants returns all tenants with their quotas.
func (c *Client) Tenants(ctx context.Context) ([]wire.Tenant, error) {
	var list []wire.Tenant
	return list, c.any(ctx, call{method: http.MethodGet, path: wire.PathTenants, out: &list})
}

// Processing returns the record of processing of the tenant of that name.
func (c *Client) Processing(ctx context.Context, name string) (wire.Processing, error) {
	var r wire.Processing
	return r, c.any(ctx, call{method: http.MethodGet, path: wire.PathProcessing + "?" + ofTenant(name), out: &r})
}

// SetTenant sets quotas of a tenant and returns all of them.
func (c *Client) SetTenant(ctx context.Context, o wire.SetTenant) (wire.Tenant, error) {
	var t wire.Tenant
	return t, c.any(ctx, call{method: http.MethodPatch, path: wire.PathTenants, in: o, out: &t})
}

// SetTenantState disables a tenant or enables it again.
func (c *Client) SetTenantState(ctx context.Context, o wire.SetTenantState) error {
	return c.any(ctx, call{method: http.MethodPost, path: wire.PathTenantStates, in: o})
}

// DeleteTenant deletes the tenant of that name, or continues to.
func (c *Client) DeleteTenant(ctx context.Context, name string) (wire.TenantDeletion, error) {
	var d wire.TenantDeletion
	return d, c.any(ctx, call{method: http.MethodDelete, path: wire.PathTenants + "?" + ofTenant(name), out: &d})
}

// Keys returns the access keys of the tenant of that name, the oldest first.
func (c *Client) Keys(ctx context.Context, tenant string) ([]wire.Key, error) {
	var list []wire.Key
	return list, c.any(ctx, call{method: http.MethodGet, path: wire.PathKeys + "?" + ofTenant(tenant), out: &list})
}

// NewKey creates an access key.
func (c *Client) NewKey(ctx context.Context, q wire.NewKey) (wire.KeyPair, error) {
	var pair wire.KeyPair
	return pair, c.any(ctx, call{method: http.MethodPost, path: wire.PathKeys, in: q, out: &pair})
}

// RevokeKey revokes an access key of the tenant of that name.
func (c *Client) RevokeKey(ctx context.Context, tenant, key string) error {
	return c.any(ctx, call{method: http.MethodDelete, path: wire.PathKeys + "/" + url.PathEscape(key) + "?" + ofTenant(tenant)})
}

func ofTenant(name string) string { return url.Values{"tenant": {name}}.Encode() }

// Receipt returns a new receipt of erasures, or one that it has brought up to date.
func (c *Client) Receipt(ctx context.Context, o receipt.Order) (receipt.Answer, error) {
	var a receipt.Answer
	return a, c.any(ctx, call{method: http.MethodPost, path: wire.PathReceipt, in: o, out: &a})
}

// AuditRecords reads a page of the cluster's audit log into page. query has the parameters.
func (c *Client) AuditRecords(ctx context.Context, query string, page any) error {
	return c.any(ctx, call{method: http.MethodGet, path: wire.PathAudit + "?" + query, out: page})
}

// AuditFile returns a file of an audit log, by its path in C2SP's tlog-tiles. The log is that of a tenant, or with
// an empty name the cluster's.
func (c *Client) AuditFile(ctx context.Context, tenant, path string) (b []byte, err error) {
	return b, c.any(ctx, call{method: http.MethodGet, path: wire.PathAudit + "/" + path + "?tenant=" + url.QueryEscape(tenant), raw: &b})
}

// Ready returns nil when the node at address serves requests, else the reason why
// it does not.
func (c *Client) Ready(ctx context.Context, address string) error {
	return c.one(ctx, address, call{method: http.MethodGet, path: wire.PathReady})
}

// call is one request. in and out are JSON; nil means none. raw gets the answer as it is, instead of out.
type call struct {
	method, path string
	in, out      any
	raw          *[]byte
}

// UnreachableError is returned when no node answered.
type UnreachableError struct{ Errs []error }

// Error returns the error of the last node. The errors are mostly alike.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no node answers on its admin port: %v", e.Errs[len(e.Errs)-1])
}

// Unwrap returns the error of the last node.
func (e *UnreachableError) Unwrap() error { return e.Errs[len(e.Errs)-1] }

// AnswerError is an answer other than success.
type AnswerError struct {
	Status  int
	Message string
}

// Error returns the node's own words.
func (e *AnswerError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the node answered %d %s", e.Status, http.StatusText(e.Status))
	}
	return e.Message
}

// any calls one node after the other until one answers. Even an error answer is
// final, because it comes from the cluster.
func (c *Client) any(ctx context.Context, q call) error {
	var errs []error
	for _, a := range c.addresses {
		err := c.one(ctx, a, q)
		if _, answered := errors.AsType[*AnswerError](err); err == nil || answered {
			return err
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return &UnreachableError{Errs: errs}
}

func (c *Client) one(ctx context.Context, address string, q call) error {
	var body io.Reader = http.NoBody
	if q.in != nil {
		b, err := json.Marshal(q.in)
		if err != nil {
			return fmt.Errorf("encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, q.method, "https://"+address+q.path, body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", address, err)
	}
	if q.in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	b, err := c.answer(r, answerBytesMax)
	if err != nil {
		return err
	}
	if q.raw != nil {
		*q.raw = b
	}
	if q.out == nil {
		return nil
	}
	if err := json.Unmarshal(b, q.out); err != nil {
		return fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return nil
}
