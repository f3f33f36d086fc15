package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"facet/node/sigv4"
	"facet/node/transport/memnet"
)

// failing is a server whose clock moves only when the test says so.
type failing struct {
	*running
	net    *memnet.Network
	passed atomic.Int64 // time since testNow
}

func startFailing(t *testing.T, change func(*Config)) *failing {
	f := &failing{net: memnet.New(1)}
	f.running = startOn(t, f.net.Host("127.0.0.1"), func(c *Config) {
		c.Now = func() time.Time { return testNow.Add(time.Duration(f.passed.Load())) }
		if change != nil {
			change(c)
		}
	}, nil)
	return f
}

// health sends a signed request from an address, with a wrong signature or a right one.
func (f *failing) health(from, as string, wrong bool) received {
	f.t.Helper()
	raw := signed{as: as, method: "GET", target: "/v1.1/health", headers: []sigv4.Header{{Name: "Connection", Value: "close"}}}.raw(f.t)
	if wrong {
		head, rest, _ := strings.Cut(raw, "Signature=")
		raw = head + "Signature=" + strings.Repeat("0", 64) + rest[64:]
	}
	c := f.dialOver(f.net.Host(from))
	defer c.Close()
	if _, err := io.WriteString(c, raw); err != nil {
		f.t.Fatal(err)
	}
	return read(f.t, bufio.NewReader(c), "GET")
}

// want fails the test unless a has the status.
func (f *failing) want(what string, a received, status int) {
	f.t.Helper()
	if a.status != status {
		f.t.Errorf("%s: got %d %s, want %d", what, a.status, a.body, status)
	}
}

func TestWrongSignaturesAreSlowed(t *testing.T) {
	t.Parallel()
	f := startFailing(t, nil)
	for _, key := range []string{"reader", "nobody"} { // it does not reveal which exists
		for i := range failuresBurst {
			f.want(fmt.Sprintf("%s, failure %d", key, i), f.health("127.0.0.1", key, true), 403)
		}
		asked := f.service.questions.Load()
		for range 20 {
			a := f.health("127.0.0.1", key, true)
			if a.status != 429 || !strings.Contains(a.body, reasonSignatures) || a.header.Get("Retry-After") != "3" {
				t.Errorf("%s, too often: got %d %s, Retry-After %q", key, a.status, a.body, a.header.Get("Retry-After"))
			}
		}
		if f.service.questions.Load() != asked {
			t.Errorf("%s: refusals asked the cluster", key)
		}
	}
	f.want("the key from another address", f.health("127.0.0.2", "reader", false), 200)
	f.want("another key from the address", f.health("127.0.0.1", "admin", false), 200)
	f.want("a right signature that nobody proved there", f.health("127.0.0.1", "reader", false), 429)
	f.passed.Add(int64(3 * time.Second))
	f.want("the next try", f.health("127.0.0.1", "reader", true), 403)
	f.want("the one after it", f.health("127.0.0.1", "reader", true), 429)
	f.passed.Add(int64(3 * time.Second))
	f.want("a right signature after the wait", f.health("127.0.0.1", "reader", false), 200)
}

// A client with the right secret shares its access key and its address with one that
// has a wrong secret.
func TestRightSignatureIsServedAmongWrongOnes(t *testing.T) {
	t.Parallel()
	f := startFailing(t, nil)
	f.want("the first request", f.health("127.0.0.1", "reader", false), 200)
	for range failuresBurst {
		f.want("a wrong one", f.health("127.0.0.1", "reader", true), 403)
	}
	for range 3 {
		f.want("a wrong one too many", f.health("127.0.0.1", "reader", true), 429)
		f.want("a right one", f.health("127.0.0.1", "reader", false), 200)
	}
	delete(f.service.keys, "reader")
	f.want("a revoked key", f.health("127.0.0.1", "reader", false), 429)
	asked := f.service.questions.Load()
	f.want("a revoked key again", f.health("127.0.0.1", "reader", false), 429)
	if f.service.questions.Load() != asked {
		t.Error("a revoked key asks the cluster again")
	}
}
