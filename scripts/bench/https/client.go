package https

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
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
	"facet/internal/testkit"
	"facet/node/sigv4"
)

// SearchPath is the target of searches.
const SearchPath = "/v1.1/face/search"

// AnswerTimeout is the longest that one request of a fast client may take.
const AnswerTimeout = 40 * time.Second

const (
	answerMax    = 16 << 20
	sessionsKept = 64
)

// Client makes requests as one tenant's program does. It is safe for concurrent use.
type Client struct {
	testkit.Client
	URL string // URL of the first node, for Post
	TLS *tls.Config

	number atomic.Int64 // of the last request
}

// New returns a client for the tenant of a cluster.
func New(i dev.Info) (*Client, error) {
	roots, err := testkit.Roots(i.CAFile)
	if err != nil {
		return nil, err
	}
	c := &Client{
		URL: i.BaseURLs[0],
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ClientSessionCache: tls.NewLRUClientSessionCache(sessionsKept)},
	}
	c.Signer = testkit.Signer(i.AccessKey, i.SecretKey)
	return c, nil
}

// Operation is a POST that may be sent many times.
type Operation struct {
	Target string
	Body   []byte
	hash   [sha256.Size]byte
}

// NewOperation returns an operation with body as JSON.
func NewOperation(target string, body any) (Operation, error) {
	text, err := json.Marshal(body)
	return Operation{Target: target, Body: text, hash: sha256.Sum256(text)}, err
}

// Answer is the response to one request.
type Answer struct {
	Status int
	Retry  bool // the answer has Retry-After
	Closes bool // the node closes the connection
	Body   []byte
}

// Good reports whether the request was served. A search that finds nobody, a 404, was
// served.
func (a Answer) Good() bool { return a.Status < 300 || a.Status == http.StatusNotFound }

// Refused reports whether the answer is one that an overloaded node should give.
func (a Answer) Refused() bool {
	return a.Retry && (a.Status == http.StatusTooManyRequests || a.Status == http.StatusInternalServerError)
}

// Connection carries one request at a time.
type Connection struct {
	client *Client
	host   string
	in     *bufio.Reader

	*tls.Conn
}

// Dial connects to a node (https://host:port) from an address; nil means any address.
func (c *Client) Dial(url string, from net.Addr) (*Connection, error) {
	host := strings.TrimPrefix(url, "https://")
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", url, err)
	}
	config := c.TLS.Clone()
	config.ServerName = name
	dialer := tls.Dialer{NetDialer: &net.Dialer{LocalAddr: from, Timeout: AnswerTimeout, Control: smallSegments}, Config: config}
	ctx, cancel := context.WithTimeout(context.Background(), AnswerTimeout)
	defer cancel()
	conn, err := dialer.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return &Connection{client: c, host: host, Conn: conn.(*tls.Conn), in: bufio.NewReader(conn)}, nil
}

// Close closes the connection, unless k is nil.
func (k *Connection) Close() {
	if k != nil {
		_ = k.Conn.Close() // its requests are answered
	}
}

// Head signs an operation and returns everything that goes before its body.
func (k *Connection) Head(o Operation) (string, error) {
	c := k.client
	headers, err := c.Headers(k.host, http.MethodPost, o.Target, o.hash, sigv4.Header{Name: "content-type", Value: "application/json"},
		sigv4.Header{Name: "idempotency-key", Value: fmt.Sprintf("bench-%d-%d", os.Getpid(), c.number.Add(1))})
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	var head strings.Builder
	fmt.Fprintf(&head, "POST %s HTTP/1.1\r\nhost: %s\r\nContent-Length: %d\r\n", o.Target, k.host, len(o.Body))
	for _, h := range headers {
		fmt.Fprintf(&head, "%s: %s\r\n", h.Name, h.Value)
	}
	return head.String() + "\r\n", nil
}

// Do signs an operation, sends it, and returns the answer. It reads the answer even if
// it could not send the whole body, because a node may refuse a request before the body
// ends.
func (k *Connection) Do(o Operation) (Answer, error) {
	head, err := k.Head(o)
	if err != nil {
		return Answer{}, err
	}
	if err := k.SetDeadline(time.Now().Add(AnswerTimeout)); err != nil {
		return Answer{}, err
	}
	_, err = io.WriteString(k, head)
	if err == nil {
		_, err = k.Write(o.Body)
	}
	a, err2 := k.read()
	if err2 != nil {
		return Answer{}, errors.Join(err, err2)
	}
	a.Closes = a.Closes || err != nil
	return a, nil
}

func (k *Connection) read() (Answer, error) {
	r, err := http.ReadResponse(k.in, nil)
	if err != nil {
		return Answer{}, fmt.Errorf("read the answer: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, answerMax))
	return Answer{Status: r.StatusCode, Retry: r.Header.Get("Retry-After") != "", Closes: r.Close, Body: text}, err
}

// Post makes one request over a new connection, like Send.
func (c *Client) Post(url, target string, body any) ([]byte, error) {
	o, err := NewOperation(target, body)
	if err != nil {
		return nil, err
	}
	return c.Send(url, o)
}

// Send makes one request over a new connection. It returns a *StatusError unless the
// answer is 2xx.
func (c *Client) Send(url string, o Operation) ([]byte, error) {
	k, err := c.Dial(url, nil)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	a, err := k.Do(o)
	if err == nil && a.Status/100 != 2 {
		err = &StatusError{o.Target, a}
	}
	return a.Body, err
}

// StatusError is an answer that the program did not expect.
type StatusError struct {
	Target string
	Answer Answer
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.Target, e.Answer.Status, e.Answer.Body)
}

// Found creates an empty gallery of this size and makes the client use it.
func (c *Client) Found(name string, size int) error {
	text, err := c.Post(c.URL, "/api/galleries", map[string]any{"name": name, "description": "", "size": size, "faceMinimumQualityScore": .45})
	if err != nil {
		return err
	}
	var gallery struct{ APIKey string }
	if err := json.Unmarshal(text, &gallery); err != nil || gallery.APIKey == "" {
		return fmt.Errorf("make a gallery: %s", text)
	}
	c.APIKey = gallery.APIKey
	return nil
}

// NewSearch returns a search for the face in an image, with the default number of
// candidates.
func NewSearch(image []byte) (Operation, error) {
	return NewOperation(SearchPath, map[string]any{"probe": base64.StdEncoding.EncodeToString(image)})
}
