package httpapi

import (
	"bufio"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
)

// crowdedFor starts a server whose engine has no room for images of tenantA.
func crowdedFor(t *testing.T, full *atomic.Bool) *running {
	t.Helper()
	return start(t, func(c *Config) {
		c.Crowded = func(who id.Tenant) bool { return full.Load() && who == tenantA }
	})
}

// A node without room for an image answers while the body is still to come.
func TestOverloadedNodeRefusesByTheHeaders(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	full.Store(true)
	r := crowdedFor(t, &full)
	for what, size := range map[string]int{"16 MB": 16 << 20, "300 KB": 300 << 10} {
		raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", size)}.raw(t)
		c := r.dial()
		began := time.Now()
		if _, err := io.WriteString(c, raw[:len(raw)-size+10<<10]); err != nil { // 10 KB of the body
			t.Fatal(err)
		}
		a := read(t, bufio.NewReader(c), "POST")
		if a.status != 429 || a.header.Get("Retry-After") != "1" || !a.closed {
			t.Errorf("%s: got %d, Retry-After %q, closed %v; want 429, 1, closed", what, a.status, a.header.Get("Retry-After"), a.closed)
		}
		if took := time.Since(began); took > drainTime+2*time.Second {
			t.Errorf("%s: answered after %v", what, took)
		}
	}
	if l := r.server.Load(); l.BodyMost != 0 {
		t.Errorf("%d bytes were taken for bodies of refused requests", l.BodyMost)
	}
}

// A refusal does not cost a short request its connection, and its body is not taken
// for the next request.
func TestRefusalKeepsTheConnection(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	r := crowdedFor(t, &full)
	c := r.dial()
	from := bufio.NewReader(c)
	send := func(q signed, want int) {
		t.Helper()
		write(t, c, q.raw(t))
		if a := read(t, from, q.method); a.status != want || a.closed {
			t.Fatalf("got %d %s, closed %v; want %d", a.status, a.body, a.closed, want)
		}
	}
	image := extraction("img alice" + strings.Repeat(" ", 300<<10))
	full.Store(true)
	send(image, 429)
	send(signed{as: "biometric", method: "GET", target: "/v1.1/health"}, 200)
	send(image, 429)
	full.Store(false)
	send(image, 200)
}

// Other tenants' images, and requests that need no engine, are still answered.
func TestCrowdedTenantBlocksNoOther(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	full.Store(true)
	r := crowdedFor(t, &full)
	f := func(q signed, want int) {
		t.Helper()
		if a := r.send(q); a.status != want {
			t.Errorf("%s by %s: got %d %s, want %d", q.target, q.as, a.status, a.body, want)
		}
	}
	image := extraction("img alice")
	f(image, 429)
	f(signed{as: "admin", method: "GET", target: "/api/galleries"}, 200)
	image.as = "other"
	f(image, 200)
	image.as = "stranger"
	f(image, 403)
}

// The requests of one tenant leave room for those of another.
func TestRequestsInFlightAreBoundedByTenant(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.Limits.Requests = 5 })
		var answers []<-chan received
		for range 4 {
			answers = append(answers, r.inFlight())
		}
		if a := r.send(extraction("img alice")); a.status != 429 || a.header.Get("Retry-After") != "1" {
			t.Errorf("a fifth: %d %v", a.status, a.header)
		}
		if a := r.send(signed{as: "biometric", method: "GET", target: "/v1.1/health"}); a.status != 200 {
			t.Errorf("health: %d", a.status)
		}
		other := extraction("img alice")
		other.as = "other"
		if a := r.send(other); a.status != 200 {
			t.Errorf("another tenant's: %d %s", a.status, a.body)
		}
		close(r.service.release)
		for _, answer := range answers {
			if a := <-answer; a.status != 200 {
				t.Errorf("in flight: %d", a.status)
			}
		}
		if synctest.Wait(); r.server.requests.Used() != 0 {
			t.Errorf("%d requests are still counted", r.server.requests.Used())
		}
	})
}

// The bodies of one tenant leave room for those of another.
func TestBodiesInMemoryAreSharedByTenants(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.Limits.BodiesBytes = 1 << 20 })
		for _, as := range []string{"biometric", "other"} { // from now on their tenants pay
			if a := r.send(signed{as: as, method: "GET", target: "/v1.1/health"}); a.status != 200 {
				t.Fatalf("got %d %s", a.status, a.body)
			}
		}
		raw := signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", 700<<10)}.raw(t)
		held := r.dial() // most of a body, and never its end
		write(t, held, raw[:len(raw)-300<<10])
		if synctest.Wait(); r.server.bodies.Used() < 512<<10 {
			t.Fatalf("%d bytes are taken", r.server.bodies.Used())
		}
		image := extraction("img alice" + strings.Repeat(" ", 300<<10))
		if a := r.send(image); a.status != 429 || a.header.Get("Retry-After") != "1" {
			t.Errorf("more of the same tenant: %d", a.status)
		}
		image.as = "other"
		if a := r.send(image); a.status != 200 {
			t.Errorf("another tenant's: %d %s", a.status, a.body)
		}
		if l := r.server.Load(); l.BodyMost > l.BodyLimit {
			t.Errorf("bodies took %d bytes, at most %d may", l.BodyMost, l.BodyLimit)
		}
	})
}

// A client that waits for the go-ahead gets the refusal instead.
func TestOverloadedNodeSendsNo100Continue(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	r := crowdedFor(t, &full)
	image := extraction("img alice")
	expecting := func() string {
		raw := image.raw(t)
		head, _, _ := strings.Cut(raw, "\r\n\r\n")
		return head + "\r\nExpect: 100-continue\r\n\r\n"
	}
	first := func() (string, *bufio.Reader) {
		t.Helper()
		c := r.dial()
		write(t, c, expecting())
		from := bufio.NewReader(c)
		line, err := from.ReadString('\n')
		must.Do(t, err)
		return line, from
	}
	if a := r.send(image); a.status != 200 { // the node knows its key
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if line, _ := first(); !strings.Contains(line, "100 Continue") {
		t.Errorf("with room: got %q, want the go-ahead", line)
	}
	full.Store(true)
	line, from := first()
	if !strings.Contains(line, "429") {
		t.Fatalf("without room: got %q, want 429", line)
	}
	rest, err := io.ReadAll(from)
	if err != nil || !strings.Contains(string(rest), "Retry-After: 1\r\n") || !strings.Contains(string(rest), "X-Request-Id: ") {
		t.Errorf("the refusal is %q, %v", rest, err)
	}
}
