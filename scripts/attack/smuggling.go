package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// smuggled is one way to hide a second request behind a first one.
type smuggled struct {
	what string
	raw  []byte
	// framed says that the first request's frame is in order, so that the node may keep the
	// connection. The second request is inside its body.
	framed bool
}

// smuggleWait is how long a second answer may take to come.
const smuggleWait = 1500 * time.Millisecond

// smuggling hides requests behind others.
type smuggling struct{ *attack }

// smuggle sends requests that two readers understand differently. The second request is
// signed and creates a tag: it must get no answer and have no effect.
func (a smuggling) smuggle(c *tally) error {
	if err := a.pipelined(c); err != nil {
		return err
	}
	list := a.smuggled()
	var answered atomic.Int64
	each(len(list), 8, func(i int) {
		s := list[i]
		c.try()
		conn, err := a.dial(i%nodes, address{2, byte(i)})
		if err != nil {
			c.got("%s: %v", s.what, err)
			return
		}
		defer func() { _ = conn.NetConn().Close() }()
		if _, err := conn.Write(s.raw); err != nil {
			return // the node has closed the connection
		}
		in := bufio.NewReader(conn)
		method, _, _ := bytes.Cut(bytes.TrimLeft(s.raw, "\r\n"), []byte(" "))
		_ = conn.SetReadDeadline(time.Now().Add(answerTimeout))
		first, err := read(in, string(method))
		switch {
		case isTimeout(err):
			c.got("%s: no answer, and the node keeps the connection", s.what)
			return
		case err != nil: // closed without an answer
			return
		case first.status/100 == 2 && !s.framed:
			c.got("%s: served: %s", s.what, first)
		case first.status >= 500 && first.status != http.StatusHTTPVersionNotSupported:
			c.got("%s: %s", s.what, first)
		}
		answered.Add(1)
		_ = conn.SetReadDeadline(time.Now().Add(smuggleWait))
		rest, err := io.ReadAll(in)
		if len(rest) > 0 || isTimeout(err) && !s.framed {
			c.got("%s: after %s the node goes on: %.80q", s.what, first, rest)
		}
	})
	c.note("%d first requests got an answer, %d a closed connection", answered.Load(), int64(len(list))-answered.Load())
	if answered.Load() < int64(len(list))/2 {
		return errors.New("most first requests got no answer: their refusal proves nothing")
	}
	return a.expectNoTag(c, "hidden-")
}

// pipelined sends two good requests at once: both must be answered, or this attack
// would not see a hidden one.
func (a smuggling) pipelined(c *tally) error {
	c.try()
	v := a.victim
	tag := a.sign(0, v.biometric, http.MethodPost, "/v1.1/tags/pipelined", nil, apiKey(v.gallery.apiKey))
	gone := a.sign(0, v.biometric, http.MethodDelete, "/v1.1/tags/pipelined", nil, apiKey(v.gallery.apiKey))
	conn, err := a.dial(0, address{2, 255})
	if err != nil {
		return err
	}
	defer func() { _ = conn.NetConn().Close() }()
	if _, err := conn.Write(append(tag.raw(), gone.raw()...)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		got, err := read(in, method)
		if err != nil || got.status/100 != 2 {
			return fmt.Errorf("of two requests in order, %s: %s, %w", method, got, err)
		}
	}
	return nil
}

// hidden returns the signed request to hide.
func (a smuggling) hidden(n int) []byte {
	v := a.victim
	return a.sign(n%nodes, v.biometric, http.MethodPost, fmt.Sprint("/v1.1/tags/hidden-", n), nil, apiKey(v.gallery.apiKey)).raw()
}

// smuggled returns all ways.
func (a smuggling) smuggled() []smuggled {
	var list []smuggled
	list = append(list, a.framed()...)
	list = append(list, a.malformed()...)
	return append(list, a.odd()...)
}

// post returns the lines of a good signed request without its framing headers, for the
// n-th way. Its body is no image: extracting is refused after the signature.
func (a smuggling) post(n int, body string) []string {
	return a.sign(n%nodes, a.victim.biometric, http.MethodPost, "/v1.1/face/extract", body).lines()
}

// joined returns lines and what follows them.
func joined(lines []string, headers []string, rest string) []byte {
	return []byte(strings.Join(append(append([]string{}, lines...), headers...), "\r\n") + "\r\n\r\n" + rest)
}

// framed returns requests whose body ends at different places for different readers.
func (a smuggling) framed() (list []smuggled) {
	chunk := "2\r\n{}\r\n"
	end := chunk + "0\r\n\r\n"
	short, long := "Content-Length: 2", "Content-Length: 99999"
	te := func(v string) string { return "Transfer-Encoding: " + v }
	add := func(what, body, rest string, headers ...string) {
		n := len(list)
		list = append(list, smuggled{what: what, raw: append(joined(a.post(n, body), headers, rest), a.hidden(n)...)})
	}
	for _, cl := range []string{short, long, "Content-Length: 0", "Content-Length: " + strconv.Itoa(len(end))} {
		add(cl+" and chunked", "{}", end, cl, te("chunked"))
		add("chunked and "+cl, "{}", end, te("chunked"), cl)
	}
	for _, v := range []string{
		"identity", "gzip, chunked", "chunked, identity", "chunked, chunked", "xchunked", "chunked;q=1", "\"chunked\"", "chunked,", ",chunked", "chunked\t, gzip", "cow", "",
	} {
		add("Transfer-Encoding "+v, "{}", end, te(v))
		add("Content-Length and Transfer-Encoding "+v, "{}", end, short, te(v))
	}
	add("two Transfer-Encodings", "{}", end, te("chunked"), te("chunked"))
	add("two different Transfer-Encodings", "{}", end, te("chunked"), te("identity"))
	add("blank before the colon", "{}", end, "Transfer-Encoding : chunked", short)
	add("tab before the colon", "{}", end, "Transfer-Encoding\t: chunked", short)
	add("folded Transfer-Encoding", "{}", end, "Transfer-Encoding:", " chunked", short)
	add("vertical tab", "{}", end, "Transfer-Encoding: \vchunked", short)
	add("NUL in the value", "{}", end, "Transfer-Encoding: chunked\x00", short)
	add("bare line feed before it", "{}", end, "X: y\nTransfer-Encoding: chunked", short)
	add("bare carriage return before it", "{}", end, "X: y\rTransfer-Encoding: chunked", short)
	for _, v := range []string{"+2", "-1", "2,2", "2, 2", "0x2", "2.0", "2e0", "2 ", "02x", "99999999999999999999", "", "２"} {
		if v != "2 " {
			add("Content-Length "+v, "{}", "{}", "Content-Length: "+v)
		}
	}
	add("two Content-Lengths", "{}", "{}", short, short)
	add("two different Content-Lengths", "{}", "{}", short, "Content-Length: 0")
	for what, body := range map[string]string{
		"a chunk's extension": "2;a=b\r\n{}\r\n0\r\n\r\n", "an extension with a line feed": "2;\n{}\r\n0\r\n\r\n", "a trailer": chunk + "0\r\nX-Api-Key: k\r\n\r\n",
		"a trailer with a length": chunk + "0\r\nContent-Length: 0\r\n\r\n", "chunks with line feeds": "2\n{}\n0\n\n", "a chunk of length -1": "-1\r\n{}\r\n0\r\n\r\n",
		"a chunk of 0x2": "0x2\r\n{}\r\n0\r\n\r\n", "a chunk of 2 and a blank": "2 \r\n{}\r\n0\r\n\r\n", "a chunk with a long length": "00000000000000002\r\n{}\r\n0\r\n\r\n",
		"a chunk that is too long": "2\r\n{}XX\r\n0\r\n\r\n", "a chunk without its end": "2\r\n{}0\r\n\r\n", "a length beyond 64 bits": "10000000000000002\r\n{}\r\n0\r\n\r\n",
		"a bare carriage return in a length": "2\r{}\r\n0\r\n\r\n", "an empty length": "\r\n{}\r\n0\r\n\r\n", "a last chunk of 00 with an extension": chunk + "00;x\r\n\r\n",
	} {
		add(what, "{}", body, te("chunked"))
	}
	add("a trailer that is announced", "{}", end, te("chunked"), "Trailer: X-Api-Key")
	return list
}

// malformed returns requests with a head that readers understand differently.
func (a smuggling) malformed() (list []smuggled) {
	v := a.victim
	health := func(n int) []string {
		return a.sign(n%nodes, v.only, http.MethodGet, "/v1.1/health", nil, apiKey(v.gallery.apiKey)).lines()
	}
	const offset = 100
	add := func(what string, change func(lines []string) []string, rest string) {
		n := offset + len(list)
		list = append(list, smuggled{what: what, raw: append(joined(change(health(n)), nil, rest), a.hidden(n)...)})
	}
	first := func(line string) func([]string) []string {
		return func(l []string) []string { return append([]string{line}, l[1:]...) }
	}
	more := func(headers ...string) func([]string) []string {
		return func(l []string) []string { return append(l, headers...) }
	}
	for _, line := range []string{
		"GET http://evil.test/v1.1/health HTTP/1.1", "GET https://127.0.0.1/v1.1/health HTTP/1.1", "GET //v1.1/health HTTP/1.1", "GET /v1.1/../v1.1/health HTTP/1.1",
		"GET /v1.1/./health HTTP/1.1", "GET /v1.1/%2e/health HTTP/1.1", "GET /v1.1/%2e%2e/v1.1/health HTTP/1.1", "GET /v1.1//health HTTP/1.1", `GET /v1.1\health HTTP/1.1`,
		"GET /v1.1/health#a HTTP/1.1", "GET /v1.1/health%00 HTTP/1.1", "GET /v1.1/health%0d%0a HTTP/1.1", "GET /v1.1/health HTTP/1.0", "GET /v1.1/health HTTP/1.2",
		"GET /v1.1/health HTTP/2.0", "GET /v1.1/health", "GET  /v1.1/health HTTP/1.1", "GET\t/v1.1/health\tHTTP/1.1", "GET /v1.1/health  HTTP/1.1", "get /v1.1/health HTTP/1.1",
		"GeT /v1.1/health HTTP/1.1", "BREW /v1.1/health HTTP/1.1", "CONNECT 127.0.0.1:443 HTTP/1.1", "PRI * HTTP/2.0", "OPTIONS * HTTP/1.1", "GET /v1.1/health HTTP/1.1\nX: a", "\x00GET /v1.1/health HTTP/1.1", "GET /v1.1/health HTTP/1.1\x00",
	} {
		add(strconv.Quote(line), first(line), "")
	}
	for _, headers := range [][]string{
		{"Host: evil.test"},
		{"Authorization: AWS4-HMAC-SHA256 x"},
		{"x-api-key: another"},
		{"X-API-Key: another"},
		{"X: a", " b"},
		{"X: a", "\tb"},
		{"x y: a"},
		{": a"},
		{"no colon"},
		{"X: a\rb"},
		{"X: a\nb"},
		{"X: \x00"},
		{"X: é"},
		{"X\x00: a"},
		{"Content-Length: 5"},
		{"Transfer-Encoding: chunked"},
		{"Expect: 100-continue", "Content-Length: 5"},
		{"Trailer: x-api-key"},
	} {
		rest := ""
		if strings.HasPrefix(headers[0], "Transfer") {
			rest = "2\r\n{}\r\n0\r\n\r\n"
		}
		add(strconv.Quote(strings.Join(headers, "|")), more(headers...), rest)
	}
	add("without Host", func(l []string) []string { return append(l[:1:1], l[2:]...) }, "")
	return list
}

// odd returns requests in order that contain the hidden one, and requests that end
// inside it.
func (a smuggling) odd() (list []smuggled) {
	const offset = 200
	inside := func(what string, framed bool, make func(n int, hidden string) []byte) {
		n := offset + len(list)
		list = append(list, smuggled{what: what, framed: framed, raw: make(n, string(a.hidden(n)))})
	}
	length := func(body string) []string { return []string{fmt.Sprint("Content-Length: ", len(body))} }
	inside("in a body", true, func(n int, h string) []byte { return joined(a.post(n, h), length(h), h) })
	inside("in chunks", true, func(n int, h string) []byte {
		return joined(a.post(n, h), []string{"Transfer-Encoding: chunked"}, fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(h), h))
	})
	inside("in a body with a wrong signature", true, func(n int, h string) []byte { return joined(a.post(n, "{}"), length(h), h) })
	inside("in a body without a signature", true, func(_ int, h string) []byte {
		return joined([]string{"POST /v1.1/face/extract HTTP/1.1", "Host: a"}, length(h), h)
	})
	inside("in a body that is longer than declared", false, func(n int, h string) []byte {
		return joined(a.post(n, "{}"), []string{fmt.Sprint("Content-Length: ", len(h)+9999)}, h)
	})
	inside("in a body beyond the limit", false, func(n int, h string) []byte { return joined(a.post(n, "{}"), []string{"Content-Length: 99999999"}, h) })
	inside("in a query", false, func(n int, h string) []byte {
		return joined(append([]string{"GET /v1.1/health?" + h + " HTTP/1.1"}, a.post(n, "")[1:]...), nil, "")
	})
	inside("in a header", false, func(n int, h string) []byte {
		return joined(a.post(n, "{}"), []string{"X: " + h, "Content-Length: 2"}, "{}")
	})
	inside("behind an end of chunks that are none", true, func(n int, h string) []byte {
		return joined(a.post(n, "0\r\n\r\n"+h), append(length("0\r\n\r\n"+h), "Transfer_Encoding: chunked"), "0\r\n\r\n"+h)
	})
	inside("with Expect, without waiting", true, func(n int, h string) []byte {
		return joined(a.post(n, "wrong"), append(length(h), "Expect: 100-continue"), h)
	})
	inside("with Upgrade", true, func(n int, h string) []byte {
		return joined(a.post(n, h), append(length(h), "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), h)
	})
	return list
}
