package httpapi

import (
	"strings"
	"testing"

	"facet/node/sigv4"
)

func TestOnlyConfiguredOriginsMayCall(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Origins = []string{"https://page.test"} })
	ask := func(method, as, origin string) received {
		return r.send(signed{as: as, method: method, target: "/v1.1/health", headers: []sigv4.Header{
			{Name: "Origin", Value: origin}, {Name: "Access-Control-Request-Method", Value: "GET"},
		}})
	}
	a := ask("OPTIONS", "", "https://page.test")
	if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "https://page.test" ||
		a.header.Get("Access-Control-Allow-Methods") == "" || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "x-purpose") {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	a = ask("GET", "biometric", "https://page.test")
	if a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "https://page.test" || a.header.Get("Vary") != "Origin" {
		t.Errorf("call: %d %v", a.status, a.header)
	}
	if a = ask("GET", "", "https://page.test"); a.status != 403 {
		t.Errorf("call without signature: %d", a.status)
	}
	for _, origin := range []string{"https://evil.test", "https://page.test.evil.test", "null", "http://page.test"} {
		if a = ask("OPTIONS", "", origin); a.status != 403 || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight from %s: %d %v", origin, a.status, a.header)
		}
		if a = ask("GET", "biometric", origin); a.status != 200 || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("call from %s: %d %v", origin, a.status, a.header)
		}
	}
}

func TestHealthCanBeOpen(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Health = HealthOpen })
	if a := r.send(signed{method: "GET", target: "/v1.1/health"}); a.status != 200 || a.body != `{"status":"OK"}` {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	if a := r.send(signed{method: "GET", target: "/v1.1/subjects"}); a.status != 403 {
		t.Errorf("list: %d %s", a.status, a.body)
	}
	if a := r.send(signed{method: "GET", target: "/v1.1/nothing"}); a.status != 403 {
		t.Errorf("unknown route: %d %s", a.status, a.body)
	}
}
