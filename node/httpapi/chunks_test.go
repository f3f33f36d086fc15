package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net/http/httputil"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/node/sigv4"
)

// pieces writes a body in chunks of size bytes.
func pieces(size int) func(body string) string {
	return func(body string) string {
		var b strings.Builder
		for len(body) > 0 {
			n := min(size, len(body))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		return b.String() + "0\r\n\r\n"
	}
}

// Each request comes on the connection of the one before: the reader of chunks takes
// every byte of its body and none of the next request.
func TestChunkedBodiesAreTaken(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	c := r.dial()
	from := bufio.NewReader(c)
	f := func(q signed, status int) {
		t.Helper()
		write(t, c, q.raw(t))
		if a := read(t, from, q.method); a.status != status || a.closed {
			t.Fatalf("%s %s: got %d %s, closed %v; want %d", q.method, q.target, a.status, a.body, a.closed, status)
		}
	}
	image := extraction("img alice")
	for _, size := range []int{1, 7, 4096, 1 << 20} {
		image.chunks = pieces(size)
		f(image, 200)
	}
	image.body += strings.Repeat(" ", 3<<20)
	image.chunks = pieces(4096)
	f(image, 200)
	image.chunks = func(body string) string { // digits of both cases, and zeros before them
		return fmt.Sprintf("%08X\r\n%s\r\n0000\r\n\r\n", len(body), body)
	}
	f(image, 200)
	f(signed{as: "biometric", method: "POST", target: "/v1.1/tags/red", headers: []sigv4.Header{apiKey}, chunks: pieces(1)}, 200)
	f(signed{as: "biometric", method: "DELETE", target: "/v1.1/tags", headers: []sigv4.Header{apiKey}, chunks: pieces(1)}, 405)
	image.as = "stranger" // the body is hashed and not kept
	f(image, 403)
	f(signed{as: "biometric", method: "GET", target: "/v1.1/health"}, 200)
	if used := r.server.bodies.Used(); used != 0 {
		t.Errorf("%d bytes of bodies still counted", used)
	}
}

func TestMalformedChunksAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Limits.BodyBytes = 1000; c.Limits.ReadTimeout = time.Second })
	f := func(what, method, sent string, status int, message string) {
		t.Helper()
		q := signed{as: "biometric", method: method, target: "/v1.1/face/extract", chunks: func(string) string { return sent }}
		a := r.exchange(q.raw(t)+strings.Repeat(" ", 99), method)
		if a.status != status || !a.closed || !strings.Contains(a.body, message) {
			t.Errorf("%s: got %d %s, closed %v; want %d %q, closed", what, a.status, a.body, a.closed, status, message)
		}
	}
	plain := "not in plain chunks"
	for what, sent := range map[string]string{
		"an extension":             "2;a=b\r\n{}\r\n0\r\n\r\n",
		"a blank after the length": "2 \r\n{}\r\n0\r\n\r\n",
		"a bare line feed":         "2\n{}\r\n0\r\n\r\n",
		"no length":                "\r\n{}\r\n0\r\n\r\n",
		"a prefix":                 "0x2\r\n{}\r\n0\r\n\r\n",
		"a sign":                   "+2\r\n{}\r\n0\r\n\r\n",
		"a negative length":        "-1\r\n{}\r\n0\r\n\r\n",
		"nine digits":              "000000002\r\n{}\r\n0\r\n\r\n",
		"64 bits":                  "ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
		"a chunk too long":         "2\r\n{}{}\r\n0\r\n\r\n",
		"a chunk too short":        "4\r\n{}\r\n0\r\n\r\n",
		"a trailer":                "2\r\n{}\r\n0\r\nX-Api-Key: k\r\n\r\n",
		"no CR after the length":   "2\r{}\r\n0\r\n\r\n",
		"a line feed at the end":   "2\r\n{}\r\n0\r\n\n",
	} {
		f(what, "POST", sent, 400, plain)
	}
	f("a byte too many", "POST", pieces(1001)(strings.Repeat(" ", 1001)), 413, "The body is too large.")
	f("a byte too many in pieces", "POST", pieces(300)(strings.Repeat(" ", 1001)), 413, "The body is too large.")
	f("a length beyond the limit, unsent", "POST", "7fffffff\r\n", 413, "The body is too large.")
	f("a body with GET", "GET", "2\r\n{}\r\n0\r\n\r\n", 400, "A body is not accepted with this method.")
	if used := r.server.bodies.Used(); used != 0 {
		t.Errorf("%d bytes of bodies still counted", used)
	}
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", chunks: func(string) string { return "5\r\n{}" }}
	if a := r.exchange(q.raw(t), "POST"); a.status != 408 || !a.closed {
		t.Errorf("an unfinished chunk: got %d %s", a.status, a.body)
	}
	ok := extraction("img alice")
	ok.body += strings.Repeat(" ", 1000-len(ok.body))
	ok.chunks = pieces(300)
	if a := r.send(ok); a.status != 200 {
		t.Errorf("1000 bytes: %d %s", a.status, a.body)
	}
}

// This test is not parallel: it measures the heap.
func TestAnnouncedChunksPinNoMemory(t *testing.T) {
	alone(t, func(t *testing.T) {
		r := start(t, nil)
		q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", chunks: func(string) string {
			return fmt.Sprintf("%x\r\n%s", 20<<20, strings.Repeat("A", 1<<10))
		}}.raw(t)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const n = 30
		for range n {
			if _, err := io.WriteString(r.dial(), q); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if used := r.server.bodies.Used(); used != n*bodyFirstBytes {
			t.Errorf("%d bytes are counted for %d bodies, want %d", used, n, n*bodyFirstBytes)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > n<<20/4 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
	})
}

// Each paceBytes of chunks give the client more time, as those of other bodies do.
func TestChunkedBodyEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.Limits.ReadTimeout = 300 * time.Millisecond })
		c := r.dial()
		head := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 2<<20), chunks: func(string) string { return "" }}.raw(t)
		write(t, c, head)
		for range 8 { // longer than ReadTimeout, each within half of it
			write(t, c, "40000\r\n"+strings.Repeat("A", 1<<18)+"\r\n")
			time.Sleep(100 * time.Millisecond)
		}
		write(t, c, "0\r\n\r\n")
		if a := read(t, bufio.NewReader(c), "POST"); a.status != 400 || !strings.Contains(a.body, "JSON") {
			t.Errorf("2 MB within their time: got %d %s", a.status, a.body)
		}
		slow := r.dial()
		write(t, slow, head)
		begun := time.Now()
		go drip(slow, strings.Repeat("1\r\nA\r\n", 1<<10), 50*time.Millisecond)
		if a := read(t, bufio.NewReader(slow), "POST"); a.status != 408 || !a.closed || time.Since(begun) > time.Second {
			t.Errorf("dripped chunks: got %d %s after %v", a.status, a.body, time.Since(begun))
		}
	})
}

// A busy node reads a short body in chunks to its end and keeps the connection.
func TestRefusalDrainsChunks(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	full.Store(true)
	r := crowdedFor(t, &full)
	c := r.dial()
	from := bufio.NewReader(c)
	image := extraction("img alice" + strings.Repeat(" ", 300<<10))
	image.chunks = pieces(4096)
	for _, q := range []signed{image, {as: "biometric", method: "GET", target: "/v1.1/health"}} {
		want := 429
		if q.method == "GET" {
			want = 200
		}
		write(t, c, q.raw(t))
		if a := read(t, from, q.method); a.status != want || a.closed {
			t.Fatalf("got %d %s, closed %v; want %d", a.status, a.body, a.closed, want)
		}
	}
	image.body = strings.Repeat(" ", 3<<20)
	if a := r.send(image); a.status != 429 || !a.closed {
		t.Errorf("3 MB: got %d, closed %v", a.status, a.closed)
	}
}

func TestChunksOfABodyAreBounded(t *testing.T) {
	t.Parallel()
	h := &head{method: "POST", chunked: true}
	r := newBodyReader(strings.NewReader(strings.Repeat("1\r\nA\r\n", chunksMax+1)+"0\r\n\r\n"), h, 20<<20, func() error { return nil })
	var b body
	if err := hashOf(r, &b); err == nil || err.Error() != "The body has too many chunks." {
		t.Errorf("%d chunks: %v", chunksMax+1, err)
	}
}

// What is taken as chunks is what net/http's own reader finds in them, to the byte.
func FuzzChunks(f *testing.F) {
	for _, seed := range []string{
		"0\r\n\r\n", "2\r\n{}\r\n0\r\n\r\nGET / HTTP/1.1\r\n", "2;a=b\r\n{}\r\n0\r\n\r\n", "2\r\n{}\r\n0\r\nA: b\r\n\r\n", "A\r\n0123456789\r\n00\r\n\r\n",
		"ffffffffffffffff\r\n", "2 \r\n{}\r\n0\r\n\r\n", "1\nA\n0\n\n", "2\r\n{}0\r\n\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		const limit = 1000
		server := &Server{bodies: fair.NewPool[id.Tenant](1 << 20)}
		stream := strings.NewReader(sent)
		r := newBodyReader(stream, &head{method: "POST", chunked: true}, limit, func() error { return nil })
		b, err := server.readBody(r, payer{tenant: tenantA}, keepBody)
		if err != nil {
			if got, fault := failureOf(err, v11, ""); fault || got.status < 400 || got.status >= 500 || server.bodies.Used() != 0 {
				t.Fatalf("%q: %v, %d bytes counted", sent, err, server.bodies.Used())
			}
			return
		}
		if len(b.bytes) > limit || int64(b.taken) != server.bodies.Used() {
			t.Fatalf("%q: %d bytes taken", sent, len(b.bytes))
		}
		other := strings.NewReader(sent)
		plain := bufio.NewReader(other)
		want, err := io.ReadAll(httputil.NewChunkedReader(plain))
		if err != nil || string(want) != string(b.bytes) {
			t.Fatalf("%q: read as %q, net/http reads %q, %v", sent, b.bytes, want, err)
		}
		rest, _ := io.ReadAll(plain) // from memory
		if after, _ := io.ReadAll(stream); "\r\n"+string(after) != string(rest) {
			t.Fatalf("%q: left %q, net/http leaves %q", sent, after, rest)
		}
	})
}
