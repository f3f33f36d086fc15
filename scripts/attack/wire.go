package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"facet/internal/testkit"
	"facet/node/sigv4"
)

const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 40 * time.Second // the service's own limit is 30 s
	answerMax     = 16 << 20
)

// address is where a try comes from. Every address of 127.0.0.0/8 is this machine.
type address [2]byte

func (a address) ip() net.IP { return net.IPv4(127, 77, a[0], a[1]) }

// credentials sign requests.
type credentials struct{ testkit.Client }

func credentialsOf(accessKey, secretKey string) credentials {
	return credentials{testkit.Client{Signer: testkit.Signer(accessKey, secretKey)}}
}

// request is a request as it is sent.
type request struct {
	method, target string
	headers        []sigv4.Header // in their order, Authorization among them
	body           []byte
}

// sign returns a request with all its headers signed.
func (t *target) sign(node int, who credentials, method, target string, body any, headers ...sigv4.Header) request {
	host := t.hosts[node]
	text, err1 := testkit.Body(body)
	headers, err2 := who.Headers(host, method, target, sha256.Sum256(text), headers...)
	if err := errors.Join(err1, err2); err != nil {
		panic("bug: " + err.Error()) // only a malformed request of this program
	}
	return request{method, target, append([]sigv4.Header{{Name: "host", Value: host}}, headers...), text}
}

// apiKey returns the header that selects an application.
func apiKey(key string) sigv4.Header { return sigv4.Header{Name: "x-api-key", Value: key} }

// with returns a copy of q with further headers, which its signature does not cover.
func (q request) with(headers ...sigv4.Header) request {
	q.headers = append(append([]sigv4.Header{}, q.headers...), headers...)
	return q
}

// raw returns the bytes of q, with Content-Length.
func (q request) raw() []byte {
	lines := q.lines()
	if q.body != nil || q.method == http.MethodPost || q.method == http.MethodPut || q.method == http.MethodPatch {
		lines = append(lines, fmt.Sprint("Content-Length: ", len(q.body)))
	}
	return append([]byte(strings.Join(lines, "\r\n")+"\r\n\r\n"), q.body...)
}

// lines returns the request line and the headers.
func (q request) lines() []string {
	lines := []string{q.method + " " + q.target + " HTTP/1.1"}
	for _, h := range q.headers {
		lines = append(lines, h.Name+": "+h.Value)
	}
	return lines
}

// answer is one response.
type answer struct {
	status int
	header http.Header
	body   string
	closes bool
	took   time.Duration
}

func (a answer) String() string {
	text := a.body
	if len(text) > 160 {
		text = text[:160] + "…"
	}
	return fmt.Sprintf("%d %s", a.status, text)
}

// refusedSignature reports whether a node refused the request before it knew the
// signature to be right: 403, 400 for a header that it must cover, or an error of the
// frame, after which the node closes the connection.
func (a answer) refusedSignature() bool {
	switch a.status {
	case http.StatusForbidden:
		return a.body != `{"message":"Forbidden"}`
	case http.StatusBadRequest:
		if strings.Contains(a.body, "must be signed when it is sent") {
			return true
		}
	case http.StatusTooManyRequests:
		return a.body == "" || strings.Contains(a.body, "WrongSignatures") // HEAD has no body
	}
	return a.closes && (a.status/100 == 4 || a.status == http.StatusHTTPVersionNotSupported)
}

// isTimeout reports whether err is the end of a wait: the other end has neither answered nor
// closed the connection.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// dial connects to the public port of a node.
func (t *target) dial(node int, from address) (*tls.Conn, error) {
	return t.dialPort(t.hosts[node], from, &tls.Config{RootCAs: t.roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13})
}

func (t *target) dialPort(port string, from address, config *tls.Config) (*tls.Conn, error) {
	raw, err := t.dialTCP(port, from)
	if err != nil {
		return nil, err
	}
	c := tls.Client(raw, config)
	if err := errors.Join(c.SetDeadline(time.Now().Add(answerTimeout)), c.Handshake()); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return c, nil
}

func (*target) dialTCP(port string, from address) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: from.ip()}}
	return d.Dial("tcp", port)
}

// line is a connection that carries one request after the other.
type line struct {
	*target
	node int
	from address
	wait time.Duration // for an answer; 0 is answerTimeout
	conn *tls.Conn     // nil: none is open
	in   *bufio.Reader
}

// do sends raw bytes and returns the answer. It opens a connection when there is none.
func (l *line) do(raw []byte) (a answer, err error) {
	if l.conn == nil {
		if l.conn, err = l.dial(l.node, l.from); err != nil {
			l.conn = nil
			return a, err
		}
		l.in = bufio.NewReader(l.conn)
	}
	wait := l.wait
	if wait == 0 {
		wait = answerTimeout
	}
	began := time.Now()
	if err = l.conn.SetDeadline(began.Add(wait)); err == nil {
		_, err = l.conn.Write(raw)
	}
	// A node may refuse a request before its body ends.
	method, _, _ := bytes.Cut(raw, []byte(" "))
	a, errRead := read(l.in, string(method))
	a.took = time.Since(began)
	if errRead != nil {
		l.close()
		return a, errors.Join(err, errRead)
	}
	if a.closes || err != nil {
		l.close()
	}
	return a, nil
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.NetConn().Close() // its requests are answered or lost
	}
	l.conn = nil
}

// read reads one answer, and skips the go-ahead for a body.
func read(in *bufio.Reader, method string) (answer, error) {
	for {
		r, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return answer{}, fmt.Errorf("read the answer: %w", err)
		}
		text, err := io.ReadAll(io.LimitReader(r.Body, answerMax))
		_ = r.Body.Close() // it was read
		if r.StatusCode == http.StatusContinue {
			continue
		}
		return answer{status: r.StatusCode, header: r.Header, body: string(text), closes: r.Close}, err
	}
}

// send sends one request over a connection of its own.
func (t *target) send(node int, from address, q request) (answer, error) {
	return t.exchange(node, from, q.raw(), 0)
}

func (t *target) exchange(node int, from address, raw []byte, wait time.Duration) (answer, error) {
	l := line{target: t, node: node, from: from, wait: wait}
	defer l.close()
	return l.do(raw)
}

// tally counts the tries of one attack. It is safe for concurrent use.
type tally struct {
	mu      sync.Mutex // guards tries, through and notes
	tries   int
	through []string
	notes   []string
}

// try counts one try.
func (c *tally) try() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
}

// got records what got through.
func (c *tally) got(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.through = append(c.through, fmt.Sprintf(format, args...))
}

// note records a figure for the table.
func (c *tally) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// each calls do for 0 to n-1 on several goroutines, and returns when all have ended.
func each(n, goroutines int, do func(i int)) {
	var work errgroup.Group
	work.SetLimit(goroutines)
	for i := range n {
		work.Go(func() error { do(i); return nil })
	}
	_ = work.Wait() // the functions return no errors
}
