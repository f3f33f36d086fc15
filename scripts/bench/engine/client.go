package main

import (
	"bufio"
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
	"sync/atomic"
	"time"

	"facet/cmd/facet/dev"
	"facet/node/sigv4"
)

// client makes requests as one tenant's program does: a signature each, over
// connections that are kept.
type client struct {
	signer sigv4.Signer
	tls    *tls.Config
	host   string
	apiKey string
	number atomic.Int64 // of the last request
}

func newClient(i dev.Info) (*client, error) {
	pem, err := os.ReadFile(i.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority's certificate can't be read")
	}
	c := &client{
		signer: sigv4.Signer{Region: i.Region, Service: i.Service, AccessKey: i.AccessKey, SecretKey: i.SecretKey},
		host:   strings.TrimPrefix(i.BaseURLs[0], "https://"),
	}
	name, _, err := net.SplitHostPort(c.host)
	if err != nil {
		return nil, err
	}
	c.tls = &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS13}
	return c, c.found()
}

// found makes a gallery.
func (c *client) found() error {
	k, err := c.dial()
	if err != nil {
		return err
	}
	defer k.close()
	o, err := newOperation("/api/galleries", map[string]any{
		"name": "bench", "description": "", "size": 1_000_000, "faceMinimumQualityScore": .45,
	})
	if err != nil {
		return err
	}
	text, err := k.do(o)
	if err != nil {
		return err
	}
	var g struct{ APIKey string }
	if err := json.Unmarshal(text, &g); err != nil || g.APIKey == "" {
		return fmt.Errorf("make a gallery: %s", text)
	}
	c.apiKey = g.APIKey
	return nil
}

// operation is a POST that is sent many times.
type operation struct {
	target string
	body   []byte
	hash   [sha256.Size]byte
}

func newOperation(target string, body any) (operation, error) {
	text, err := json.Marshal(body)
	return operation{target: target, body: text, hash: sha256.Sum256(text)}, err
}

func encoded(photo []byte) string { return base64.StdEncoding.EncodeToString(photo) }

// connection carries one request at a time.
type connection struct {
	client *client
	conn   *tls.Conn
	in     *bufio.Reader
}

func (c *client) dial() (*connection, error) {
	conn, err := tls.Dial("tcp", c.host, c.tls)
	if err != nil {
		return nil, err
	}
	return &connection{client: c, conn: conn, in: bufio.NewReader(conn)}, nil
}

// loop opens a connection that does o again and again, for closedLoop.
func (c *client) loop(o operation) func() (do func() error, end func(), err error) {
	return func() (func() error, func(), error) {
		k, err := c.dial()
		if err != nil {
			return nil, nil, err
		}
		return func() error { _, err := k.do(o); return err }, k.close, nil
	}
}

func (k *connection) close() {
	if k != nil {
		_ = k.conn.Close() // its requests are answered
	}
}

// persist does an operation over k, or over another connection where there is none
// or the node has closed it, and returns the one to go on with.
func (c *client) persist(k *connection, o operation) (*connection, error) {
	const tries = 3
	var err error
	for range tries {
		if k == nil {
			if k, err = c.dial(); err != nil {
				return nil, err
			}
		}
		if _, err = k.do(o); err == nil || errors.Is(err, errRefused) {
			return k, err
		}
		k.close()
		k = nil
	}
	return nil, err
}

// errRefused is an answer that no load should get.
var errRefused = errors.New("refused")

// do signs and sends, and returns the answer's body; an error unless it is a 2xx,
// or a 404 of a search that found nobody.
func (k *connection) do(o operation) ([]byte, error) {
	c := k.client
	headers := []sigv4.Header{
		{Name: "host", Value: c.host},
		{Name: "content-type", Value: "application/json"},
		{Name: "idempotency-key", Value: fmt.Sprintf("bench-%d", c.number.Add(1))},
	}
	if c.apiKey != "" {
		headers = append(headers, sigv4.Header{Name: "x-api-key", Value: c.apiKey})
	}
	more, err := c.signer.Sign(sigv4.Request{Method: http.MethodPost, Target: o.target, Headers: headers}, o.hash, time.Now())
	if err != nil {
		return nil, err
	}
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nContent-Length: %d\r\n", o.target, len(o.body))
	for _, h := range append(headers, more...) {
		fmt.Fprintf(&head, "%s: %s\r\n", h.Name, h.Value)
	}
	if _, err := io.WriteString(k.conn, head.String()+"\r\n"); err != nil {
		return nil, err
	}
	if _, err := k.conn.Write(o.body); err != nil {
		return nil, err
	}
	a, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode >= 300 && a.StatusCode != http.StatusNotFound {
		err = fmt.Errorf("%s: %w: %d %s", o.target, errRefused, a.StatusCode, text)
	}
	return text, err
}
