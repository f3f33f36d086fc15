package signature

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/node/sigv4"
)

var at = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// wire returns the text of a signed request with this body.
func wire(t *testing.T, body string) string {
	t.Helper()
	r := sigv4.Request{
		Method: "POST", Target: "/v1.1/tags/a%20b?b=1&a=2",
		Headers: []sigv4.Header{{Name: "Host", Value: "facet.test:8443"}, {Name: "X-Two", Value: "1"}, {Name: "X-Two", Value: "2"}},
	}
	more, err := sigv4.Signer{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: "AKID", SecretKey: "SECRET"}.
		Sign(r, sha256.Sum256([]byte(body)), at)
	must.Do(t, err)
	text := r.Method + " " + r.Target + " HTTP/1.1\r\n"
	for _, h := range append(r.Headers, more...) {
		text += h.Name + ": " + h.Value + "\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// explained explains the text of a request.
func explained(t *testing.T, text string, body []byte) sigv4.Explanation {
	t.Helper()
	s, err := Read(strings.NewReader(text), body)
	must.Do(t, err)
	s.Secret = "SECRET"
	return sigv4.New(sigv4.Config{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault}).Explain(s, at)
}

func TestEveryFormOfRequestIsRead(t *testing.T) {
	t.Parallel()
	const body = "{\n\"face\": \"eA==\"}"
	text := wire(t, body)
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	ofCurl := "* Connected\n> " + strings.ReplaceAll(head, "\r\n", "\r\n> ") + "\r\n> \r\n} [18 bytes data]\n< HTTP/1.1 403 Forbidden\n< \n{}\n"
	for what, e := range map[string]sigv4.Explanation{
		"as sent":              explained(t, text, nil),
		"with plain lines":     explained(t, strings.ReplaceAll(text, "\r\n", "\n"), nil),
		"body from a file":     explained(t, head+"\r\n\r\n", []byte(body)),
		"of curl -v":           explained(t, ofCurl, []byte(body)),
		"of HTTP/2":            explained(t, strings.Replace(text, "HTTP/1.1", "HTTP/2", 1), nil),
		"of Go's HTTP/2":       explained(t, strings.Replace(text, "HTTP/1.1", "HTTP/2.0", 1), nil),
		"without a length":     explained(t, head[:strings.LastIndex(head, "\r\n")]+"\r\n\r\n"+body, nil),
		"body with more lines": explained(t, text+"\n", nil),
	} {
		if !e.Accepted {
			t.Errorf("%s: %+v", what, e)
		}
	}
	for want, bad := range map[string]string{
		"16 are here: name the file": text[:len(text)-1], "not the text of a request": "hello", "malformed": strings.Repeat("photo", 1000),
	} {
		if _, err := Read(strings.NewReader(bad), nil); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestPartsMakeRequest(t *testing.T) {
	t.Parallel()
	text := wire(t, "body")
	head, _, _ := strings.Cut(text, "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	p := Parts{Method: "POST", URL: "https://facet.test:8443/v1.1/tags/a%20b?b=1&a=2#part", Headers: lines[2:]} // the URL has the host
	s, err := p.Request([]byte("body"))
	must.Do(t, err)
	s.Secret = "SECRET"
	v := sigv4.New(sigv4.Config{Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault})
	if e := v.Explain(s, at); !e.Accepted {
		t.Errorf("%+v", e)
	}
	for _, bad := range []Parts{{Method: "GET", URL: "/v1.1/health"}, {URL: "https://h/"}, {Method: "GET", URL: "https://h", Headers: []string{"x"}}} {
		if _, err := bad.Request(nil); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	if s, err := (Parts{Method: "GET", URL: "https://h?a=1"}).Request(nil); err != nil || s.Target != "/?a=1" {
		t.Errorf("a URL without a path: %q, %v", s.Target, err)
	}
}

func TestWriteMarksWhatDiffers(t *testing.T) {
	t.Parallel()
	e := explained(t, strings.Replace(wire(t, "body"), "X-Two: 2", "X-Two: 3", 1), nil)
	var b bytes.Buffer
	must.Do(t, Write(&b, e))
	for _, want := range []string{"ok       date ", "refused  signature ", "refused with \"The request signature"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	b.Reset()
	e = explained(t, strings.Replace(wire(t, "body"), "POST", "PUT", 1), nil)
	if err := Write(&b, e); err != nil || !strings.Contains(b.String(), "\n> POST\n") || strings.Contains(b.String(), "> host:") {
		t.Errorf("%v\n%s", err, &b)
	}
}
