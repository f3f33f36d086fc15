package httpapi

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/must"
	"facet/internal/testkit"
	"facet/node/sigv4"
	"facet/node/transport"
	"facet/node/transport/memnet"
)

// bubble runs f in virtual time, beside other tests.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	alone(t, f)
}

// alone is bubble, not beside other tests.
func alone(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	warm()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(2 * time.Minute) }) // until the last timers of the server have run
		f(t)
	})
}

// warm answers one request outside of bubbles: the first answer starts a goroutine of fasthttp
// that never ends.
var warm = sync.OnceFunc(func() {
	client, server := net.Pipe()
	go func() { _ = fasthttp.ServeConn(server, func(*fasthttp.RequestCtx) {}) }()
	_, err := io.WriteString(client, line("GET / HTTP/1.0", ""))
	if err == nil {
		_, err = http.ReadResponse(bufio.NewReader(client), nil)
	}
	if err != nil {
		panic("ask the first server: " + err.Error())
	}
	_ = client.Close()
})

// testNow is the server's and the signers' clock in these tests.
var testNow = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// running is a Server with TLS.
type running struct {
	t       testing.TB
	network transport.Network
	addr    string
	service *standIn
	server  *Server
	roots   *x509.CertPool
	logs    *testkit.Buffer
}

// start serves a new standIn until the test ends. change may alter the Config.
func start(t testing.TB, change func(*Config)) *running {
	t.Helper()
	return startOn(t, memnet.New(1).Host("127.0.0.1"), change, nil)
}

// startOn is start on another network, and lets edit change the server and its listener.
func startOn(t testing.TB, network transport.Network, change func(*Config), edit func(*Server, net.Listener) net.Listener) *running {
	t.Helper()
	r := &running{t: t, network: network, service: newStandIn(), logs: &testkit.Buffer{}}
	certificate, roots := selfSigned(t)
	r.roots = roots
	cfg := Config{
		Service: r.service,
		TLS:     &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Log:     slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:     func() time.Time { return testNow },
	}
	if change != nil {
		change(&cfg)
	}
	server, err := New(cfg)
	must.Do(t, err)
	r.server = server
	ln, err := network.Listen(context.Background(), ":0")
	must.Do(t, err)
	r.addr = ln.Addr().String()
	if edit != nil {
		ln = edit(server, ln)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return r
}

// selfSigned makes a certificate for loopback and a pool that trusts it.
func selfSigned(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "facet.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"facet.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must.Do(t, err)
	leaf, err := x509.ParseCertificate(der)
	must.Do(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, roots
}

// dial opens a TLS connection that is closed when the test ends.
func (r *running) dial() *tls.Conn {
	r.t.Helper()
	return r.dialOver(r.network)
}

// dialOver is dial from another host.
func (r *running) dialOver(network transport.Network) *tls.Conn {
	r.t.Helper()
	raw, err := network.Dial(context.Background(), r.addr)
	must.Do(r.t, err)
	c := tls.Client(raw, &tls.Config{RootCAs: r.roots, ServerName: "facet.test"})
	r.t.Cleanup(func() { _ = c.Close() })
	must.Do(r.t, c.SetDeadline(time.Now().Add(30*time.Second)))
	return c
}

// signed is a request to be signed and sent.
type signed struct {
	as      string // access key; "" sends no signature
	method  string
	target  string
	headers []sigv4.Header
	body    string
	// chunks, when not nil, writes the body in chunks.
	chunks func(body string) string
	// at is the signer's clock; zero is testNow.
	at time.Time
}

// raw returns the bytes of the request on the wire.
func (q signed) raw(t testing.TB) string {
	t.Helper()
	r := sigv4.Request{Method: q.method, Target: q.target, Headers: append([]sigv4.Header{{Name: "Host", Value: "facet.test"}}, q.headers...)}
	sent := q.body
	if q.chunks != nil {
		sent = q.chunks(q.body)
		r.Headers = append(r.Headers, sigv4.Header{Name: "Transfer-Encoding", Value: "chunked"})
	} else if q.body != "" {
		r.Headers = append(r.Headers, sigv4.Header{Name: "Content-Length", Value: fmt.Sprint(len(q.body))})
	}
	if q.as != "" {
		at := q.at
		if at.IsZero() {
			at = testNow
		}
		more, err := sigv4.Signer{Region: regionDefault, Service: service, AccessKey: q.as, SecretKey: "secret of " + q.as}.
			Sign(r, sha256.Sum256([]byte(q.body)), at)
		must.Do(t, err)
		r.Headers = append(r.Headers, more...)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", q.method, q.target)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", h.Name, h.Value)
	}
	return b.String() + "\r\n" + sent
}

// received is an answer.
type received struct {
	status int
	header http.Header
	body   string
	closed bool // the server closes the connection
}

// read reads one answer.
func read(t testing.TB, from *bufio.Reader, method string) received {
	t.Helper()
	response, err := http.ReadResponse(from, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read answer's body: %v", err)
	}
	return received{response.StatusCode, response.Header, string(text), response.Close}
}

func write(t testing.TB, to io.Writer, text string) {
	t.Helper()
	_, err := io.WriteString(to, text)
	must.Do(t, err)
}

// exchange sends raw bytes on a new connection and reads one answer. The server may close the
// connection before it has all of them.
func (r *running) exchange(raw, method string) received {
	r.t.Helper()
	c := r.dial()
	if _, err := io.WriteString(c, raw); err != nil && !errors.Is(err, syscall.EPIPE) {
		r.t.Fatalf("send: %v", err)
	}
	return read(r.t, bufio.NewReader(c), method)
}

// send signs and sends q, and returns the answer.
func (r *running) send(q signed) received {
	r.t.Helper()
	return r.exchange(q.raw(r.t), q.method)
}
