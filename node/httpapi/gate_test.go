package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/node/httpapi/openapi"
	"facet/node/sigv4"
	"facet/router"
)

var errUnknown = router.Errorf(router.NotFound, "", "no such key")

// Each look-up costs the cluster one question, unless it shares it with others of
// the same moment.
func TestUnknownKeysAskTheClusterSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var mu sync.Mutex
		moments := map[time.Time]int{}
		var clients sync.WaitGroup
		const each, flood = 200, 100 // every client sends a made-up key after the other
		for n := range flood {
			clients.Go(func() {
				for i := range each {
					_, err := through(t.Context(), &g, fmt.Sprintf("garbage %d %d", n, i), func() (int, error) {
						mu.Lock()
						defer mu.Unlock()
						moments[time.Now()]++
						return 0, errUnknown
					})
					if !errors.Is(err, errUnknown) {
						t.Errorf("got %v", err)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		begun := time.Now()
		clients.Wait()
		took := time.Since(begun)
		if looks := len(moments); looks > int(2*took/gateInterval)+2 {
			t.Errorf("%d moments of looking in %v", looks, took)
		}
		total := 0
		for _, n := range moments {
			total += n
		}
		if total != each*flood {
			t.Errorf("%d looks, want %d: none may be left out", total, each*flood)
		}
	})
}

func TestNewKeysWorkAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		exists := false
		look := func() (int, error) {
			if exists {
				return 7, nil
			}
			return 0, errUnknown
		}
		ask := func() (int, time.Duration) {
			begun := time.Now()
			n, _ := through(t.Context(), &g, "key", look)
			return n, time.Since(begun)
		}
		if n, took := ask(); n != 0 || took != 0 {
			t.Errorf("first look: %d after %v", n, took)
		}
		exists = true // made on another node meanwhile
		if n, took := ask(); n != 7 || took > gateInterval {
			t.Errorf("after it was made: %d after %v", n, took)
		}
		for range 100 { // known by now, so never delayed
			if n, took := ask(); n != 7 || took != 0 {
				t.Fatalf("known: %d after %v", n, took)
			}
		}
		exists = false
		if n, _ := ask(); n != 0 {
			t.Errorf("revoked: %d", n)
		}
		var waited time.Duration
		for range 10 { // a revoked key is as unknown as any
			_, took := ask()
			waited += took
		}
		if waited < 4*gateInterval {
			t.Errorf("10 requests with a revoked key waited for %v", waited)
		}
	})
}

func TestFaultIsNotAnUnknownKey(t *testing.T) {
	t.Parallel()
	g := newGate()
	name := gateName(sha256.Sum256([]byte("key")))
	g.remember(name)
	fault := errors.New("no leader")
	if _, err := through(t.Context(), &g, "key", func() (int, error) { return 0, fault }); !errors.Is(err, fault) {
		t.Errorf("got %v", err)
	}
	if _, ok := g.found.young[name]; !ok {
		t.Error("the key was forgotten")
	}
}

func TestGateEndsWaitWithTheContext(t *testing.T) {
	t.Parallel()
	g := gate{opens: time.Now().Add(time.Hour)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := through(ctx, &g, "key", func() (int, error) { return 0, nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestGateBoundsItsNames(t *testing.T) {
	t.Parallel()
	g := newGate()
	for i := range 5 * gateNamesMax {
		g.remember(sha256.Sum256([]byte(fmt.Sprint(i))))
		if len(g.found.young) > gateNamesMax || len(g.found.old) > gateNamesMax {
			t.Fatalf("%d and %d names", len(g.found.young), len(g.found.old))
		}
	}
}

// watched counts the look-ups of keys.
type watched struct {
	*standIn
	accessKeys, apiKeys atomic.Int64
}

func (w *watched) AccessKey(ctx context.Context, accessKey string) (router.AccessKey, error) {
	w.accessKeys.Add(1)
	return w.standIn.AccessKey(ctx, accessKey)
}

func (w *watched) Access(ctx context.Context, tenant id.Tenant, apiKey string) (router.Access, error) {
	w.apiKeys.Add(1)
	return w.standIn.Access(ctx, tenant, apiKey)
}

// A flood of made-up access keys neither starves nor slows a known client, and a
// new key works.
func TestFloodOfMadeUpKeysDelaysNoClient(t *testing.T) {
	t.Parallel()
	w := &watched{standIn: newStandIn()}
	r := start(t, func(c *Config) { c.Service = w })
	health := func(as string) int {
		return r.send(signed{as: as, method: "GET", target: "/v1.1/health"}).status
	}
	if got := health("biometric"); got != 200 {
		t.Fatalf("first request: %d", got)
	}
	var flood sync.WaitGroup
	for n := range 8 {
		flood.Go(func() {
			for i := range 20 {
				if got := health(fmt.Sprintf("stranger%d.%d", n, i)); got != 403 {
					t.Errorf("made-up key: %d", got)
				}
			}
		})
	}
	for _, as := range []string{"biometric", "reader", "admin", "biometric"} {
		if got := health(as); got != 200 {
			t.Errorf("%s: %d", as, got)
		}
	}
	flood.Wait()
	if got := w.accessKeys.Load(); got != 165 {
		t.Errorf("%d look-ups for 165 requests: a key must never be refused unseen", got)
	}
}

func TestDescriptionIsServedUnsigned(t *testing.T) {
	t.Parallel()
	r := start(t, func(c *Config) { c.Console, c.Origins = ConsoleOff, []string{"https://page.test"} })
	a := r.send(signed{method: "GET", target: "/openapi.json"})
	if a.status != 200 || a.header.Get("Content-Type") != openapi.ContentType || !strings.HasPrefix(a.body, "{") || a.body != string(openapi.Document()) {
		t.Errorf("%d %s, %d bytes", a.status, a.header.Get("Content-Type"), len(a.body))
	}
	f := func(header, value string, status int) received {
		t.Helper()
		got := r.send(signed{method: "GET", target: "/openapi.json", headers: []sigv4.Header{{Name: "Origin", Value: "https://page.test"}, {Name: header, Value: value}}})
		vary := strings.Join(got.header.Values("Vary"), ", ")
		if got.status != status || len(got.body) > len(a.body)/4 || got.header.Get("Access-Control-Allow-Origin") != "https://page.test" || vary != "Accept-Encoding, Origin" {
			t.Errorf("%s: %s: got %d with %d bytes of %d, %v", header, value, got.status, len(got.body), len(a.body), got.header)
		}
		return got
	}
	if zipped := f("Accept-Encoding", "gzip", 200); zipped.header.Get("Content-Encoding") != "gzip" || zipped.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("compressed: %v", zipped.header)
	}
	f("If-None-Match", a.header.Get("ETag"), 304)
}

func TestKeyLookupWithoutLeaderIs500(t *testing.T) {
	t.Parallel()
	a := start(t, nil).send(signed{as: "leaderless", method: "GET", target: "/v1.1/health"})
	if a.status != 500 || a.header.Get("Retry-After") != "2" || a.body != `{"message":"No leader.","errorCode":5000,"errorType":"ServerError"}` {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
}
