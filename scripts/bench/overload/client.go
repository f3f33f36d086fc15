//go:build linux

package main

import (
	"bufio"
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
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"facet/node/sigv4"
)

// answerTimeout bounds one request of a client that is not slow.
const answerTimeout = 40 * time.Second

// client makes requests as one tenant's program does.
type client struct {
	signer sigv4.Signer
	tls    *tls.Config
	host   string
	apiKey string
	number atomic.Int64 // of the last request
}

func newClient(n *node, accessKey, secret string) (*client, error) {
	pem, err := os.ReadFile(n.info.CAFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority's certificate can't be read")
	}
	c := &client{
		signer: sigv4.Signer{Region: n.info.Region, Service: n.info.Service, AccessKey: accessKey, SecretKey: secret},
		host:   strings.TrimPrefix(n.info.BaseURLs[0], "https://"),
	}
	name, _, err := net.SplitHostPort(c.host)
	if err != nil {
		return nil, err
	}
	c.tls = &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS13, ClientSessionCache: tls.NewLRUClientSessionCache(64)}
	return c, c.found()
}

// found makes a gallery. It stays empty, so searches find nobody.
func (c *client) found() error {
	o, err := newOperation("/api/galleries", map[string]any{
		"name": "bench", "description": "", "size": 1_000_000, "faceMinimumQualityScore": .45,
	})
	if err != nil {
		return err
	}
	k, err := c.dial(nil)
	if err != nil {
		return err
	}
	defer k.close()
	a, err := k.do(o)
	if err != nil {
		return err
	}
	var g struct{ APIKey string }
	if err := json.Unmarshal(a.body, &g); err != nil || g.APIKey == "" {
		return fmt.Errorf("make a gallery: %s", a.body)
	}
	c.apiKey = g.APIKey
	return nil
}

// forged gives a client that names this one's access key and does not have its secret.
func (c *client) forged() *client {
	f := &client{signer: c.signer, tls: c.tls, host: c.host, apiKey: c.apiKey}
	f.signer.SecretKey = strings.Repeat("0", len(c.signer.SecretKey))
	return f
}

// operation is a POST that is sent many times.
type operation struct {
	target     string
	body       []byte
	hash       [sha256.Size]byte
	photoBytes int
}

func newOperation(target string, body any) (operation, error) {
	text, err := json.Marshal(body)
	return operation{target: target, body: text, hash: sha256.Sum256(text)}, err
}

// newSearch is the search with a portrait of 1.03 megapixels.
func newSearch(assets string) (operation, error) {
	photo, err := os.ReadFile(filepath.Join(assets, "photos", "face_recognition", "obama.jpg"))
	if err != nil {
		return operation{}, err
	}
	o, err := newOperation("/v1.1/face/search", map[string]any{"probe": base64.StdEncoding.EncodeToString(photo)})
	o.photoBytes = len(photo)
	return o, err
}

// answer is what came back.
type answer struct {
	status int
	retry  bool // it says when to try again
	closes bool
	body   []byte
}

// good tells whether the request was served: a search that finds nobody is a 404.
func (a answer) good() bool { return a.status < 300 || a.status == http.StatusNotFound }

// refused tells whether the answer is one that an overloaded node should give.
func (a answer) refused() bool {
	return a.retry && (a.status == http.StatusTooManyRequests || a.status == http.StatusInternalServerError)
}

// connection carries one request at a time.
type connection struct {
	client *client
	conn   *tls.Conn
	in     *bufio.Reader
}

// dial connects from an address; nil is any.
func (c *client) dial(from net.Addr) (*connection, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: from, Timeout: answerTimeout}, Config: c.tls}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", c.host)
	if err != nil {
		return nil, err
	}
	return &connection{client: c, conn: conn.(*tls.Conn), in: bufio.NewReader(conn)}, nil
}

func (k *connection) close() {
	if k != nil {
		_ = k.conn.Close() // its requests are answered
	}
}

// head signs an operation and gives everything that goes before its body.
func (c *client) head(o operation) (string, error) {
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
		return "", err
	}
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nContent-Length: %d\r\n", o.target, len(o.body))
	for _, h := range append(headers, more...) {
		fmt.Fprintf(&head, "%s: %s\r\n", h.Name, h.Value)
	}
	return head.String() + "\r\n", nil
}

// do signs and sends, and returns the answer. It looks for the answer even when the
// body could not be sent to its end: a refusal may come before.
func (k *connection) do(o operation) (answer, error) {
	head, err := k.client.head(o)
	if err != nil {
		return answer{}, err
	}
	if err := k.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return answer{}, err
	}
	_, err = io.WriteString(k.conn, head)
	if err == nil {
		_, err = k.conn.Write(o.body)
	}
	a, err2 := k.read()
	if err2 != nil {
		return answer{}, errors.Join(err, err2)
	}
	a.closes = a.closes || err != nil
	return a, nil
}

func (k *connection) read() (answer, error) {
	r, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return answer{status: r.StatusCode, retry: r.Header.Get("Retry-After") != "", closes: r.Close, body: text}, err
}
