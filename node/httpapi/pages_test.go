package httpapi

import (
	"encoding/json"
	"strings"
	"testing"

	"facet/node/console"
	"facet/node/sigv4"
	"facet/node/wire"
)

func TestConsoleNeedsNoSignature(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	f := func(method, target string, status int, want string) received {
		t.Helper()
		a := r.send(signed{method: method, target: target})
		if a.status != status || !strings.Contains(a.body, want) {
			t.Errorf("%s %s: got %d %.80s, want %d with %q", method, target, a.status, a.body, status, want)
		}
		return a
	}
	page := f("GET", "/console/?any=thing", 200, "<title>facet</title>")
	for name, part := range map[string]string{
		"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "Etag": `W/"`, "X-Request-Id": "",
	} {
		if got := page.header.Get(name); got == "" || !strings.Contains(got, part) {
			t.Errorf("%s is %q", name, got)
		}
	}
	head := f("HEAD", "/console/", 200, "")
	if head.body != "" || head.header.Get("Content-Length") != page.header.Get("Content-Length") {
		t.Errorf("HEAD: %d bytes of body, %v", len(head.body), head.header)
	}
	f("GET", "/console/app.js", 200, "import")
	f("GET", "/console/vendor/preact.js", 200, "export")
	f("GET", "/docs/", 200, "<title>Interface")
	f("HEAD", "/docs/app.js", 200, "")
	f("POST", "/docs/", 403, "Missing Authentication Token")
	f("GET", "/docsx", 403, "Missing Authentication Token")
	f("GET", "/console/nothing", 404, "no such page")
	f("GET", "/consoles", 403, "Missing Authentication Token")
	f("POST", "/console/", 403, "Missing Authentication Token")
	f("DELETE", "/console/session", 403, "Missing Authentication Token")
	if a := f("GET", "/console", 308, ""); a.header.Get("Location") != "/console/" {
		t.Errorf("/console leads to %q", a.header.Get("Location"))
	}
	for header, status := range map[sigv4.Header]int{
		{Name: "Accept", Value: "text/html,application/xhtml+xml,*/*;q=0.8"}: 303, {Name: "Accept", Value: "*/*"}: 403, {Name: "X", Value: "text/html"}: 403,
	} {
		q := signed{method: "GET", target: "/", headers: []sigv4.Header{header}}
		if a := r.send(q); a.status != status || (a.header.Get("Location") == "/console/") != (status == 303) {
			t.Errorf("/ with %v: %d, to %q", header, a.status, a.header.Get("Location"))
		}
		if q.as = "biometric"; r.send(q).status != 404 {
			t.Errorf("/ with %v and a signature leads to the console", header)
		}
	}
	again := r.send(signed{method: "GET", target: "/console/", headers: []sigv4.Header{{Name: "If-None-Match", Value: page.header.Get("Etag")}}})
	if again.status != 304 || again.body != "" {
		t.Errorf("revalidated: %d, %d bytes", again.status, len(again.body))
	}
	zipped := r.send(signed{method: "GET", target: "/console/vendor/preact.js", headers: []sigv4.Header{{Name: "Accept-Encoding", Value: "br, gzip"}}})
	if zipped.header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(zipped.body, "\x1f\x8b") {
		t.Errorf("compressed: %v", zipped.header)
	}
	if a := r.send(signed{method: "GET", target: "/console/", body: "x"}); a.status != 400 {
		t.Errorf("with a body: %d", a.status)
	}
}

func TestNodeSessionHasNoRights(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Region = "eu" })
	a := r.send(signed{method: "GET", target: console.SessionPath})
	var s console.Session
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.status != 200 || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("session: %d %s %v", a.status, a.body, err)
	}
	if s.How != console.ByNode || s.Version != wire.Version || s.Region != "eu" || s.Rights == nil || len(s.Rights) > 0 || s.Nodes != nil {
		t.Errorf("session: %s", a.body)
	}
}

// An open console is compared with a path that nothing serves.
func TestConsoleCanBeOff(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Console = ConsoleOff })
	want := r.send(signed{method: "GET", target: "/nothing"})
	for _, target := range []string{"/console", "/console/", "/console/app.js", console.SessionPath, "/docs", "/docs/"} {
		if a := r.send(signed{method: "GET", target: target}); a.status != want.status || a.body != want.body {
			t.Errorf("%s: got %d %.80s, want %d %s", target, a.status, a.body, want.status, want.body)
		}
	}
	home := signed{method: "GET", target: "/", headers: []sigv4.Header{{Name: "Accept", Value: "text/html"}}}
	if a := r.send(home); a.status != want.status || a.body != want.body {
		t.Errorf("/: got %d %s", a.status, a.body)
	}
	if a := r.send(signed{as: "biometric", method: "GET", target: "/console/"}); a.status != 404 {
		t.Errorf("signed: %d", a.status)
	}
}
