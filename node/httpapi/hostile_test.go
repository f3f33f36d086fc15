package httpapi

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"

	"facet/node/sigv4"
	"facet/node/transport"
)

// line joins the lines of a request.
func line(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n" }

// A mark before a text, or a target as clients write it to a proxy, leaves no doubt.
func TestHarmlessSpellingsAreRead(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	for _, body := range []string{`{"face":"aW1nIGFubmE="}`, "\ufeff" + `{"face":"aW1nIGFubmE="}`, "\ufeff" + `{"face":" \n data:image/png;base64,aW1nIGFubmE="}`} {
		if a := r.send(signed{as: "biometric", method: "POST", target: "/v1.1/subjects", headers: []sigv4.Header{apiKey}, body: body}); a.status != 201 {
			t.Errorf("%q: %d %s", body, a.status, a.body)
		}
	}
	if items, err := readRegistrations([]byte("\ufeff" + `{"registrations":[{"filename":"a"}]}`)); err != nil || len(items) != 1 {
		t.Errorf("registrations behind a mark: %v, %v", items, err)
	}
	raw := signed{as: "reader", method: "GET", target: "/v1.1/health?x=1"}.raw(t)
	for _, target := range []string{"https://facet.test/v1.1/health?x=1", "https://FACET.test/v1.1/health?x=1"} {
		if a := r.exchange(strings.Replace(raw, "/v1.1/health?x=1", target, 1), "GET"); a.status != 200 {
			t.Errorf("%s: %d %s", target, a.status, a.body)
		}
	}
	for target, want := range map[string]string{"https://facet.test": "/", "https://facet.test?x=1": "/?x=1"} {
		if h, err := parseHead("GET", target, "HTTP/1.1", "Host: facet.test\r\n\r\n", 0); err != nil || h.target != want {
			t.Errorf("%s: read as %q, %v", target, h.target, err)
		}
	}
}

// Two HTTP servers could understand every input of this test differently. None has
// a signature, so a 403 would mean that the input got through the frame.
func TestAmbiguousRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	f := func(what, raw string, status int) {
		t.Helper()
		method, _, _ := strings.Cut(raw, " ")
		a := r.exchange(raw, strings.TrimPrefix(method, "\r\n"))
		if a.status != status || !a.closed || len(a.header.Get("X-Request-Id")) != 32 {
			t.Errorf("%s: got %d %q, closed %v; want %d, closed", what, a.status, a.body, a.closed, status)
		}
		isTyped := strings.Contains(a.body, `"errorCode":1001,"errorType":"InvalidRequest"`)
		if !strings.HasPrefix(a.body, `{"message":"`) || isTyped != (status == 400) {
			t.Errorf("%s: body %q", what, a.body)
		}
	}
	get := func(target string, headers ...string) string {
		return line(append([]string{"GET " + target + " HTTP/1.1", "Host: facet.test"}, append(headers, "")...)...)
	}
	post := func(body string, headers ...string) string {
		return line(append([]string{"POST /v1.1/subjects HTTP/1.1", "Host: facet.test"}, append(headers, "")...)...) + body
	}
	chunks := "2\r\n{}\r\n0\r\n\r\n"
	f("chunked and Content-Length", post(chunks, "Content-Length: 2", "Transfer-Encoding: chunked"), 400)
	f("Content-Length and chunked", post(chunks, "Transfer-Encoding: chunked", "Content-Length: 2"), 400)
	f("Content-Length 0 and chunked", post(chunks, "Transfer-Encoding: chunked", "Content-Length: 0"), 400)
	f("identity", post("{}", "Transfer-Encoding: identity", "Content-Length: 2"), 400)
	f("identity alone", post("{}", "Transfer-Encoding: identity"), 400)
	f("gzip, chunked", post(chunks, "Transfer-Encoding: gzip, chunked"), 400)
	f("chunked, identity", post(chunks, "Transfer-Encoding: chunked, identity"), 400)
	f("chunked with a trailer announced", post(chunks, "Transfer-Encoding: chunked", "Trailer: X-Api-Key"), 400)
	f("no Content-Length", post("{}", "Content-Length:"), 400)
	f("two Transfer-Encodings", post(chunks, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 400)
	f("gzip", post(chunks, "Transfer-Encoding: gzip"), 400)
	f("blank before colon", post(chunks, "Transfer-Encoding : chunked"), 400)
	f("Transfer-Encoding in HTTP/1.0", line("POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked", "")+chunks, 400)
	f("trailer", post("0\r\nX-Api-Key: k\r\n\r\n", "Trailer: X-Api-Key", "Content-Length: 0"), 400)
	f("two Content-Lengths", post("{}", "Content-Length: 2", "Content-Length: 2"), 400)
	f("Content-Length +2", post("{}", "Content-Length: +2"), 400)
	f("Content-Length 2,2", post("{}", "Content-Length: 2,2"), 400)
	f("Content-Length -1", post("{}", "Content-Length: -1"), 400)
	f("Content-Length beyond 63 bits", post("{}", "Content-Length: 99999999999999999999"), 400)
	f("two hosts", get("/v1.1/health", "Host: facet.test"), 400)
	f("no host", line("GET /v1.1/health HTTP/1.1", ""), 400)
	f("two API keys", get("/v1.1/health", "x-api-key: a", "X-API-KEY: b"), 400)
	f("two Authorizations", get("/v1.1/health", "authorization: a", "Authorization: a"), 400)
	f("two Idempotency-Keys", post("{}", "Idempotency-Key: a", "Idempotency-Key: b", "Content-Length: 2"), 400)
	f("folded header", get("/v1.1/health", "x-api-key: a", " b"), 400)
	f("fold with a tab", get("/v1.1/health", "x-api-key: a", "\tb"), 400)
	f("bare line feed after the request line", strings.Replace(get("/v1.1/health"), "\r\n", "\n", 1), 400)
	f("bare line feed in a header", get("/v1.1/health", "A: b\nx-api-key: c"), 400)
	f("bare carriage return", get("/v1.1/health", "A: b\rc"), 400)
	f("NUL in a header", get("/v1.1/health", "A: b\x00c"), 400)
	f("byte beyond ASCII in a header", get("/v1.1/health", "A: b\xc3\xa9"), 400)
	f("header without colon", get("/v1.1/health", "x-api-key"), 400)
	f("header without name", get("/v1.1/health", ": x"), 400)
	f("blank in a header's name", get("/v1.1/health", "x api-key: x"), 400)
	f("absolute form", get("http://evil.test/v1.1/health"), 400)
	f("absolute form of another host", get("https://evil.test/v1.1/health"), 400)
	f("absolute form in plain text", get("http://facet.test/v1.1/health"), 400)
	f("two If-Match", get("/v1.1/health", "If-Match: *", "If-Match: *"), 400)
	f("Content-Encoding", post("\x1f\x8b", "Content-Encoding: gzip", "Content-Length: 2"), 400)
	f("asterisk", line("OPTIONS * HTTP/1.1", "Host: facet.test", ""), 400)
	f("authority form", line("CONNECT facet.test:443 HTTP/1.1", "Host: facet.test", ""), 400)
	f("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
	f("HTTP/1.0", line("GET /v1.1/health HTTP/1.0", "Host: facet.test", ""), 505)
	f("HTTP/1.2", line("GET /v1.1/health HTTP/1.2", "Host: facet.test", ""), 505)
	f("HTTP/0.9", "GET /v1.1/health\r\n\r\n", 400)
	f("lower-case method", line("get /v1.1/health HTTP/1.1", "Host: facet.test", ""), 400)
	f("unknown method", line("BREW /v1.1/health HTTP/1.1", "Host: facet.test", ""), 400)
	f("body with GET", get("/v1.1/health", "Content-Length: 2")+"{}", 400)
	f("body with DELETE", line("DELETE /v1.1/subjects/x HTTP/1.1", "Host: a", "Content-Length: 2", "")+"{}", 400)
	for _, target := range []string{
		"/..", "/v1.1/../v1.1/health", "/v1.1/./health", "/%2e%2e/health", "/v1.1/%2E/health", "//v1.1/health", "/v1.1//health",
		"/v1.1/hea\\lth", "/v1.1/health#frag", "/v1.1/health%00", "/v1.1/health%0d%0a", "/v1.1/%c2%85", "/v1.1/%7f", "/v1.1/health%", "/v1.1/health%2",
		"/v1.1/%zz", "/v1.1/%ff", "/v1.1/h\xc3\xa9", "/v1.1/subjects?start=\"1\"", "/v1.1/{x}", "/v1.1/health?a=<", "/" + strings.Repeat("a/", segmentsMax) + "a",
	} {
		f(target, get(target), 400)
	}
	many := make([]string, headersMax) // Host is one more
	for i := range many {
		many[i] = "A: b"
	}
	f("many headers", get("/v1.1/health", many...), 431)
	edge := get("/v1.1/health", "A: "+strings.Repeat("b", headerBytesMax-len(get("/v1.1/health", "A: "))))
	f("a byte too many", strings.Replace(edge, "A: b", "A: bb", 1), 431)
	for _, raw := range []string{get("/v1.1/health", many[1:]...), edge} {
		if a := r.exchange(raw, "GET"); a.status != 403 {
			t.Errorf("%d bytes and %d headers: %d %s", len(raw), strings.Count(raw, ": "), a.status, a.body)
		}
	}
	f("large header", get("/v1.1/health", "A: "+strings.Repeat("b", headerBytesMax)), 431)
	f("long target", get("/"+strings.Repeat("a", headerBytesMax)), 431)
}

// The pieces in which a request line comes do not hide its end.
func TestBareLineFeedIsFoundInPieces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := func(text string, want bool) {
			t.Helper()
			for size := 1; size <= len(text); size++ {
				var e lineEnd
				for rest := text; rest != ""; rest = rest[min(size, len(rest)):] {
					e.scan([]byte(rest[:min(size, len(rest))]))
				}
				if e.bare != want {
					t.Errorf("%q in pieces of %d bytes: bare %v", text, size, e.bare)
				}
			}
		}
		f("GET / HTTP/1.1\nHost: a\r\n\r\n", true)
		f("GET / HTTP/1.1\r\n\r\nGET / HTTHTTP/1.1\nA: b", true)
		f("GET / HTTP/1.1\r\nA: HTTP/1.1\r\n\r\nHTTP/1.", false)
		r := start(t, nil)
		c := r.dial()
		for _, piece := range []string{"GET /v1.1/health HTT", "P/1.1", "\nHost: facet.test\r\n\r\n"} {
			write(t, c, piece)
			time.Sleep(50 * time.Millisecond)
		}
		if a := read(t, bufio.NewReader(c), "GET"); a.status != 400 {
			t.Errorf("in three pieces: %d %s", a.status, a.body)
		}
	})
}

// An underscore is not a hyphen: no header is found under another's name.
func TestUnderscoreIsNoHyphenInHeaders(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	raw := signed{as: "biometric", method: "GET", target: "/v1.1/subjects"}.raw(t)
	key := keyOf("app")
	if a := r.exchange(strings.Replace(raw, "\r\n\r\n", "\r\nx-api-key: "+key+"\r\n\r\n", 1), "GET"); a.status != 404 {
		t.Errorf("with x-api-key: %d %s", a.status, a.body)
	}
	if a := r.exchange(strings.Replace(raw, "\r\n\r\n", "\r\nx_api_key: "+key+"\r\n\r\n", 1), "GET"); a.status != 403 || a.body != `{"message":"Forbidden"}` {
		t.Errorf("with x_api_key: %d %s", a.status, a.body)
	}
}

// The bytes after a refused body must not be taken for the next request.
func TestBodyIsNotReadAsARequest(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	inner := signed{as: "biometric", method: "GET", target: "/v1.1/health"}.raw(t)
	for _, first := range []string{
		line("POST /v1.1/face/extract HTTP/1.1", "Host: facet.test", "Content-Length: "+"999", ""),
		line("POST /v1.1/face/extract HTTP/1.1", "Host: facet.test", "Content-Length: 99999999", ""),
		line("GET /v1.1/health HTTP/1.1", "Host: facet.test", "Content-Length: 999", ""),
		line("POST /v1.1/face/extract HTTP/1.1", "Host: facet.test", "Transfer-Encoding: chunked", ""),
	} {
		c := r.dial()
		write(t, c, first+inner+strings.Repeat(" ", 999))
		from := bufio.NewReader(c)
		a := read(t, from, "POST")
		if rest, err := io.ReadAll(from); len(rest) != 0 || err != nil || !a.closed {
			t.Errorf("%q: answered %d, closed %v, then %q, %v", first, a.status, a.closed, rest, err)
		}
	}
}

func TestConnectionServesManyRequests(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	c := r.dial()
	from := bufio.NewReader(c)
	ids := map[string]bool{}
	for _, q := range []signed{
		{as: "biometric", method: "GET", target: "/v1.1/health"},
		{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"aW1nIGFsaWNl"}`},
		{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"` + strings.Repeat("A", 1<<20) + `"}`},
		{as: "biometric", method: "GET", target: "/nothing"},
		{as: "stranger", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 1<<20)}, // hashed, not kept
		{method: "GET", target: "/v1.1/health"},
		{as: "biometric", method: "GET", target: "/v1.1/health"},
	} {
		write(t, c, q.raw(t))
		a := read(t, from, q.method)
		if a.closed {
			t.Fatalf("%s %s: closes after %d", q.method, q.target, a.status)
		}
		ids[a.header.Get("X-Request-Id")] = true
	}
	if len(ids) != 7 {
		t.Errorf("%d request ids for 7 requests", len(ids))
	}
	if used := r.server.bodies.Used(); used != 0 {
		t.Errorf("%d bytes of bodies still counted", used)
	}
}

// The client sends no byte of the body that it declares.
func TestTooLargeBodyIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Limits.BodyBytes = 1000 })
	for _, headers := range [][]string{
		{"Content-Length: 1001"}, {"Content-Length: 999999999999"}, {"Content-Length: 1001", "Expect: 100-continue"},
	} {
		begun := time.Now()
		a := r.exchange(line(append([]string{"POST /v1.1/subjects HTTP/1.1", "Host: facet.test"}, append(headers, "")...)...), "POST")
		if a.status != 413 || a.body != `{"message":"The body is too large."}` || !a.closed || time.Since(begun) > 2*time.Second {
			t.Errorf("%v: %d %s after %v", headers, a.status, a.body, time.Since(begun))
		}
	}
	ok := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: `{"faces":"aW1nIGFsaWNl"}` + strings.Repeat(" ", 1000-24)}
	if a := r.send(ok); a.status != 200 {
		t.Errorf("1000 bytes: %d %s", a.status, a.body)
	}
}

// The client sends the whole body before it reads: no reset must destroy the
// answer.
func TestRefusalReachesASendingClient(t *testing.T) {
	t.Parallel()
	r := startOn(t, transport.OS{}, nil, nil) // only TCP has resets
	body := strings.Repeat("A", 21<<20)
	for _, raw := range []string{
		line("POST /v1.1/subjects HTTP/1.1", "Host: facet.test", "Content-Length: 22020096", "") + body,
		line("POST /v1.1/subjects HTTP/1.1", "Host: facet.test", "Content-Length: 8388608", "") + body[:8<<20],
	} {
		want := 413
		if len(raw) < 20<<20 {
			want = 403
		}
		if a := r.exchange(raw, "POST"); a.status != want || !a.closed {
			t.Errorf("got %d %s, want %d", a.status, a.body, want)
		}
	}
}

// Faults in the headers are answered without waiting for the body.
func TestHeadersAreCheckedBeforeTheBody(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	q := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 1<<20), at: testNow.Add(-time.Hour)}
	begun := time.Now()
	// fasthttp reads the first 8 KiB before it calls the handler.
	raw := q.raw(t)
	a := r.exchange(raw[:len(raw)-1<<20+8<<10], "POST")
	if a.status != 403 || !strings.HasPrefix(a.body, `{"message":"Signature expired: 20260506T060809Z is now earlier than 20260506T070309Z (20260506T070809Z - 5 min.)"`) {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("answered after %v", took)
	}
}
