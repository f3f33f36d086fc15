package console

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet.internal/client"
	"facet/internal/must"
	"facet/node/console"
	"facet/node/wire"
)

// browser is a browser at a console.
type browser struct {
	*http.Client
	t *testing.T
	s *Server
}

// open starts a console whose node answers with node, and a browser that is not signed in.
func open(t *testing.T, node http.HandlerFunc) *browser {
	t.Helper()
	cfg := Config{Out: io.Discard, Status: func(context.Context) (wire.Status, error) { return wire.Status{Shards: 7}, nil }}
	if node != nil {
		server := httptest.NewTLSServer(node)
		t.Cleanup(server.Close)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		must.Do(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
		var err error
		cfg.AccessKey, cfg.Nodes = "AK", []string{server.URL}
		if cfg.Tenant, err = client.New(client.Config{BaseURLs: cfg.Nodes, AccessKey: "AK", SecretKey: "SK", CAFile: ca, Tries: 1}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Open(cfg)
	must.Do(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &browser{t: t, s: s, Client: anotherBrowser(t)}
}

// anotherBrowser has no cookies, and follows no redirects.
func anotherBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must.Do(t, err)
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is the head of an answer.
type answer struct {
	status int
	header http.Header
}

// ask sends a request with headers "Name: value". Host counts, too.
func (b *browser) ask(method, target, body string, headers ...string) (answer, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.s.host+target, strings.NewReader(body))
	must.Do(b.t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	a, err := b.Do(r)
	must.Do(b.t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	must.Do(b.t, err)
	return answer{a.StatusCode, a.Header}, string(text)
}

// signIn opens the console's address.
func (b *browser) signIn() {
	b.t.Helper()
	u, err := url.Parse(b.s.Address())
	must.Do(b.t, err)
	a, _ := b.ask("GET", u.RequestURI(), "")
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/console/?entered" {
		b.t.Fatalf("the address leads to %d %v", a.status, a.header)
	}
	c := a.header.Get("Set-Cookie")
	if !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Strict") {
		b.t.Errorf("cookie: %s", c)
	}
}

func TestAddressWorksOnce(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	if a, _ := b.ask("GET", console.SessionPath, ""); a.status != 401 {
		t.Errorf("without a session: %d", a.status)
	}
	if a, _ := b.ask("GET", "/?token=wrong", ""); a.status != 403 {
		t.Errorf("a wrong token: %d", a.status)
	}
	if a, _ := b.ask("GET", "/?token=wrong", "", "Accept: text/html,*/*;q=0.8"); a.status != 303 || a.header.Get("Location") != "/console/" || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a wrong token typed by a person: %d, %v", a.status, a.header)
	}
	b.signIn()
	if a, text := b.ask("GET", console.SessionPath, ""); a.status != 200 || !strings.Contains(text, `"how":"loopback"`) {
		t.Errorf("with a session: %d %s", a.status, text)
	}
	b.Client = anotherBrowser(t)
	u, _ := url.Parse(b.s.Address())
	if a, _ := b.ask("GET", u.RequestURI(), ""); a.status != 403 || a.header.Get("Set-Cookie") != "" {
		t.Errorf("a second use: %d %v", a.status, a.header)
	}
	if a, _ := b.ask("GET", console.SessionPath, "", "Cookie: "+b.s.cookieName()+"=guessed"); a.status != 401 {
		t.Errorf("a made-up cookie: %d", a.status)
	}
}

func TestLockedSessionNeedsNewAddress(t *testing.T) {
	t.Parallel()
	b := open(t, nil)
	var printed bytes.Buffer
	b.s.cfg.Out = &printed
	if a, _ := b.ask("DELETE", console.SessionPath, ""); a.status != 401 || printed.Len() > 0 {
		t.Errorf("a stranger ends the session: %d, %s", a.status, &printed)
	}
	b.signIn()
	old, locked := b.s.Address(), *b
	if a, _ := b.ask("DELETE", console.SessionPath, "", "Sec-Fetch-Site: cross-site"); a.status != 403 {
		t.Errorf("another page ends the session: %d", a.status)
	}
	if a, _ := b.ask("DELETE", console.SessionPath, ""); a.status != 204 || !strings.Contains(printed.String(), b.s.Address()) || b.s.Address() == old {
		t.Errorf("the end of a session: %d, %q, the new address is %s", a.status, &printed, b.s.Address())
	}
	if a, _ := locked.ask("GET", console.StatusPath, ""); a.status != 401 {
		t.Errorf("after the lock: %d", a.status)
	}
	b.Client = anotherBrowser(t)
	if a, _ := b.ask("GET", strings.TrimPrefix(old, "http://"+b.s.host), ""); a.status != 403 {
		t.Errorf("the old address: %d", a.status)
	}
	b.signIn()
	if a, _ := b.ask("GET", console.StatusPath, ""); a.status != 200 {
		t.Errorf("by the new address: %d", a.status)
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	t.Parallel()
	calls := 0
	b := open(t, func(http.ResponseWriter, *http.Request) { calls++ })
	b.signIn()
	f := func(want int, target string, headers ...string) {
		t.Helper()
		if a, text := b.ask("GET", target, "", headers...); a.status != want {
			t.Errorf("%s with %q: got %d %s, want %d", target, headers, a.status, text, want)
		}
	}
	_, port, _ := strings.Cut(b.s.host, ":")
	for _, target := range []string{"/", "/console/", console.SessionPath, console.StatusPath, "/v1.1/health"} {
		for _, header := range []string{
			"Host: evil.test", "Host: evil.test:" + port, "Host: localhost:" + port, "Host: 127.0.0.1", "Host: 127.0.0.1:1",
			"Origin: https://evil.test", "Origin: null", "Origin: http://127.0.0.1:1", "Origin: https://" + b.s.host,
		} {
			f(403, target, header)
		}
	}
	f(403, console.SessionPath, "Sec-Fetch-Site: cross-site")
	f(403, "/v1.1/health", "Sec-Fetch-Site: same-site") // a page on another port
	if calls > 0 {
		t.Errorf("%d requests reached the node", calls)
	}
	f(200, console.SessionPath, "Origin: http://"+b.s.host, "Sec-Fetch-Site: same-origin")
	f(200, "/v1.1/health", "Origin: http://"+b.s.host, "Sec-Fetch-Site: same-origin")
}

func TestRequestsAreSignedAndPassedOn(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	b := open(t, func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		got, body = r, string(text)
		w.Header().Set("X-Request-Id", "abc")
		w.Header().Set("Set-Cookie", "a=b")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"message":"There is no tag."}`)
	})
	if a, _ := b.ask("DELETE", "/v1.1/tags/x", ""); a.status != 401 || got != nil {
		t.Errorf("without a session: %d", a.status)
	}
	b.signIn()
	a, text := b.ask("POST", "/v1.1/tags/a%2Fb?x=1", `{"a": 1}`, "X-Api-Key: app", "Content-Type: application/json", "Authorization: mine", "X-Purpose: case 4711")
	if a.status != 404 || text != `{"message":"There is no tag."}` || a.header.Get("X-Request-Id") != "abc" || a.header.Get("Set-Cookie") != "" {
		t.Errorf("answer: %d %s %v", a.status, text, a.header)
	}
	if got.RequestURI != "/v1.1/tags/a%2Fb?x=1" || body != `{"a": 1}` || got.Header.Get("X-Api-Key") != "app" ||
		got.Header.Get("X-Purpose") != "case 4711" || !strings.HasPrefix(got.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AK/") || got.Header.Get("Cookie") != "" {
		t.Errorf("the node got %s %s %v", got.RequestURI, body, got.Header)
	}
	a, _ = b.ask("POST", "/v1.1/face/extract", strings.Repeat("x", bodyBytesMax+1))
	if a.status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body beyond the bound: %d", a.status)
	}
	for _, target := range []string{"/v2/x", "/metrics", "/admin/other", "/v1.1", "/v1.1/../metrics"} {
		got = nil
		if a, _ := b.ask("GET", target, ""); a.status/100 == 2 || got != nil && !strings.HasPrefix(got.RequestURI, "/v1.1/") {
			t.Errorf("%s: %d", target, a.status)
		}
	}
}

func TestSessionSaysWhatPagesCanDo(t *testing.T) {
	t.Parallel()
	f := func(node http.HandlerFunc, rights ...console.Right) {
		t.Helper()
		b := open(t, node)
		b.signIn()
		_, text := b.ask("GET", console.SessionPath, "")
		var s console.Session
		if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Rights) != len(rights) || s.Version != wire.Version {
			t.Errorf("session: %s, %v, want %v", text, err, rights)
		}
		a, text := b.ask("GET", console.StatusPath, "")
		if a.status != 200 || !strings.Contains(text, `"shards":7`) {
			t.Errorf("status: %d %s", a.status, text)
		}
		if a, text = b.ask("GET", console.DocumentPath, ""); a.status != 200 || node == nil && !strings.Contains(text, "searchFaces") {
			t.Errorf("%v: description %d", rights, a.status)
		}
		if a, text = b.ask("GET", console.Docs+"/", ""); a.status != 200 || !strings.Contains(text, "<title>Interface") {
			t.Errorf("%v: pages of the interface %d", rights, a.status)
		}
		if a, _ = b.ask("POST", console.StatusPath, ""); a.status != 404 {
			t.Errorf("an order: %d", a.status)
		}
		a, _ = b.ask("GET", "/api/galleries", "")
		if node == nil && a.status != 404 {
			t.Errorf("without a tenant: %d", a.status)
		}
	}
	f(nil, console.RightOperator)
	f(func(http.ResponseWriter, *http.Request) {}, console.RightTenant, console.RightOperator)
}

func TestDeadClusterIsSaid(t *testing.T) {
	t.Parallel()
	b := open(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	b.signIn()
	if a, text := b.ask("GET", "/v1.1/health", ""); a.status != 502 || !strings.Contains(text, "NoNode") {
		t.Errorf("got %d %s", a.status, text)
	}
}
