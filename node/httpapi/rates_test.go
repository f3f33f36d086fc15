package httpapi

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/sigv4"
	"facet/router"
)

// tenantNo and applicationNo return ids.
func tenantNo(n int) id.Tenant           { return id.Tenant{UUID: id.UUID{byte(n >> 16), byte(n >> 8), byte(n)}} }
func applicationNo(n int) id.Application { return id.Application{UUID: tenantNo(n).UUID} }

func TestRateIsABurstThenPerSecond(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 10, Burst: 3}, Rate{})
	now := testNow
	took := func() int {
		n := 0
		for range 100 {
			if r.take(now, tenantNo(1), id.Application{}, one) == 0 {
				n++
			}
		}
		return n
	}
	if n := took(); n != 3 {
		t.Errorf("at once: %d requests, want the burst of 3", n)
	}
	if wait := r.blocked(now, tenantNo(1), one); wait != 100*time.Millisecond {
		t.Errorf("wait %v, want 100ms", wait)
	}
	now = now.Add(99 * time.Millisecond)
	if n := took(); n != 0 {
		t.Errorf("after 99 ms: %d requests", n)
	}
	now = now.Add(time.Millisecond)
	if n := took(); n != 1 {
		t.Errorf("after 100 ms: %d requests", n)
	}
	now = now.Add(time.Hour)
	if n := took(); n != 3 {
		t.Errorf("after an hour: %d requests, want the burst of 3", n)
	}
	total := 0
	for range 1000 { // refused requests cost nothing
		now = now.Add(10 * time.Millisecond)
		total += took()
	}
	if total < 99 || total > 101 {
		t.Errorf("%d requests in 10 s of flood, want 100", total)
	}
}

func TestRateTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 1, Burst: 10}, Rate{PerSecond: 1, Burst: 4})
	take := func(tenant, application int) bool {
		return r.take(testNow, tenantNo(tenant), applicationNo(application), one) == 0
	}
	count := func(tenant, application int) (n int) {
		for range 1000 {
			if take(tenant, application) {
				n++
			}
		}
		return n
	}
	if n := count(1, 1); n != 4 {
		t.Errorf("an application: %d, want its 4", n)
	}
	// The tenant was not charged for the refused requests of its first application.
	if n := count(1, 2); n != 4 {
		t.Errorf("another application of the tenant: %d, want its 4", n)
	}
	if n := count(1, 3); n != 2 {
		t.Errorf("a third application: %d, want the tenant's last 2", n)
	}
	if n := count(2, 4); n != 4 {
		t.Errorf("an application of another tenant: %d, want its 4", n)
	}
}

func TestUnboundedRateKeepsNoBuckets(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{}, Rate{Burst: 5})
	for i := range 10_000 {
		if r.take(testNow, tenantNo(i), applicationNo(i), one) != 0 {
			t.Fatalf("request %d is refused", i)
		}
	}
	if len(r.tenants.of)+len(r.applications.of) != 0 {
		t.Error("buckets were made")
	}
}

// One second's requests may come at once.
func TestRateWithoutBurstAllowsOneSecond(t *testing.T) {
	t.Parallel()
	for perSecond, want := range map[float64]int{0.1: 1, 1: 1, 2.5: 3, 1e300: 1<<31 - 1} {
		if b := sizeOf(Rate{PerSecond: perSecond}); b.burst != want {
			t.Errorf("%g per second: burst %d, want %d", perSecond, b.burst, want)
		}
	}
}

func TestVeryLowRateIsBounded(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 1e-300, Burst: 1}, Rate{PerSecond: math.NaN()})
	if wait := r.take(testNow, tenantNo(1), applicationNo(1), one); wait != 0 {
		t.Errorf("first request: wait %v", wait)
	}
	if wait := r.take(testNow, tenantNo(1), applicationNo(1), one); wait != retryAfterMax {
		t.Errorf("second request: wait %v, want %v", wait, retryAfterMax)
	}
}

// The number of buckets is bounded.
func TestFullBucketsAreDroppedFirst(t *testing.T) {
	t.Parallel()
	r := newRates(Rate{PerSecond: 1, Burst: 2}, Rate{})
	now := testNow
	for i := range bucketsMax - 1 {
		r.take(now, tenantNo(i), id.Application{}, one)
	}
	now = now.Add(time.Minute) // all those are full again
	busy := tenantNo(bucketsMax)
	for range 2 {
		if r.take(now, busy, id.Application{}, one) != 0 {
			t.Fatal("the burst is refused")
		}
	}
	r.take(now, tenantNo(bucketsMax+1), id.Application{}, one)
	if n := len(r.tenants.of); n != 2 {
		t.Errorf("%d buckets are kept, want the 2 that are not full", n)
	}
	if r.blocked(now, busy, one) == 0 {
		t.Error("the busy tenant was forgotten")
	}
	for i := range 2 * bucketsMax { // none of them is full
		if r.take(now, tenantNo(bucketsMax+2+i), id.Application{}, one) != 0 {
			t.Fatal("a first request is refused")
		}
		if n := len(r.tenants.of); n > bucketsMax {
			t.Fatalf("%d buckets, at most %d", n, bucketsMax)
		}
	}
}

// hand is a clock that the test moves.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func (h *hand) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// limited starts a server with rates and a clock.
func limited(t *testing.T, rules Rules) (*running, *hand) {
	t.Helper()
	clock := &hand{now: testNow}
	return start(t, func(c *Config) { c.Rules, c.Now = rules, clock.time }), clock
}

// ask sends a request with the API key of an application.
func ask(r *running, clock *hand, as, key, method, target, body string) received {
	r.t.Helper()
	q := signed{as: as, method: method, target: target, body: body, at: clock.time()}
	if key != "" {
		q.headers = []sigv4.Header{{Name: "x-api-key", Value: keyOf(key)}}
	}
	return r.send(q)
}

// Each access key has a bound of its own for health.
func TestHealthIsBoundedByAccessKey(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{})
	health := func(as string, status int) {
		t.Helper()
		a := ask(r, clock, as, "", "GET", "/v1.1/health", "")
		if a.status != status || status == 429 && (a.header.Get("Retry-After") != "1" || a.body != `{"message":"Too many requests.","reason":"RateLimit"}`) {
			t.Fatalf("%s: got %d %s, Retry-After %q, want %d", as, a.status, a.body, a.header.Get("Retry-After"), status)
		}
	}
	for range healthBurst {
		health("biometric", 200)
	}
	health("biometric", 429)
	health("admin", 200)
	if a := ask(r, clock, "biometric", "app", "GET", "/v1.1/tags", ""); a.status != 200 {
		t.Errorf("another operation: %d %s", a.status, a.body)
	}
	clock.move(time.Second)
	for range healthPerSecond {
		health("biometric", 200)
	}
	health("biometric", 429)
}

func TestTooFastIs429WithRetryAfter(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{TenantRate: Rate{PerSecond: 0.25, Burst: 3}})
	for i := range 3 {
		if a := ask(r, clock, "biometric", "app", "GET", "/v1.1/tags", ""); a.status != 200 {
			t.Errorf("request %d: %d %s", i, a.status, a.body)
		}
	}
	a := ask(r, clock, "biometric", "app", "GET", "/v1.1/tags", "")
	if a.status != 429 || a.body != `{"message":"Too many requests.","reason":"RateLimit","quota":"requests"}` || a.header.Get("Retry-After") != "4" || a.closed {
		t.Errorf("request 4: %d %s %v", a.status, a.body, a.header)
	}
	if a := ask(r, clock, "admin", "", "GET", "/api/galleries", ""); a.status != 429 {
		t.Errorf("another access key of the tenant: %d %s", a.status, a.body)
	}
	if a := ask(r, clock, "biometric", "", "GET", "/nothing", ""); a.status != 429 {
		t.Errorf("an unknown route: %d %s", a.status, a.body)
	}
	if a := ask(r, clock, "biometric", "", "GET", "/v1.1/health", ""); a.status != 200 {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	if a := ask(r, clock, "other", "foreign", "GET", "/v1.1/tags", ""); a.status != 200 {
		t.Errorf("another tenant: %d %s", a.status, a.body)
	}
	if a := ask(r, clock, "stranger", "app", "GET", "/v1.1/tags", ""); a.status != 403 {
		t.Errorf("an unknown access key: %d %s", a.status, a.body)
	}
	seconds, err := strconv.Atoi(a.header.Get("Retry-After"))
	must.Do(t, err)
	clock.move(time.Duration(seconds) * time.Second)
	if a := ask(r, clock, "biometric", "app", "GET", "/v1.1/tags", ""); a.status != 200 {
		t.Errorf("after Retry-After: %d %s", a.status, a.body)
	}
}

// A tenant over its rate costs no look-up of its API keys.
func TestTooFastCostsNoKeyLookUp(t *testing.T) {
	t.Parallel()
	w := &watched{standIn: newStandIn()}
	r := start(t, func(c *Config) { c.Service, c.TenantRate = w, Rate{PerSecond: 0.1, Burst: 2} })
	clock := &hand{now: testNow}
	for i, want := range []int{403, 403, 429, 429, 429} {
		if a := ask(r, clock, "biometric", fmt.Sprint("guess", i), "GET", "/v1.1/tags", ""); a.status != want {
			t.Errorf("guess %d: %d %s, want %d", i, a.status, a.body, want)
		}
	}
	if got := w.apiKeys.Load(); got != 2 {
		t.Errorf("%d look-ups, want 2", got)
	}
}

// A client without the tenant's secret can't use up its rate.
func TestForgedRequestChargesNoTenant(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{TenantRate: Rate{PerSecond: 0.1, Burst: 1}})
	for range 5 {
		q := signed{as: "biometric", method: "GET", target: "/v1.1/tags", at: clock.time()}
		raw := strings.Replace(q.raw(t), "GET /v1.1/tags", "GET /v1.1/tagz", 1)
		if a := r.exchange(raw, "GET"); a.status != 403 {
			t.Errorf("forged: %d %s", a.status, a.body)
		}
	}
	if a := ask(r, clock, "biometric", "app", "GET", "/v1.1/tags", ""); a.status != 200 {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
}

func TestApplicationsHaveTheirOwnRates(t *testing.T) {
	t.Parallel()
	r, clock := limited(t, Rules{TenantRate: Rate{PerSecond: 1, Burst: 6}, ApplicationRate: Rate{PerSecond: 1, Burst: 2}})
	verify := fmt.Sprintf(`{"id":"x","probe":%q}`, "aW1nIGFsaWNl")
	faces := fmt.Sprintf(`{"face":%q,"probe":%q}`, "aW1nIGFsaWNl", "aW1nIGFsaWNl")
	f := func(what, key, target, body string, want int) {
		t.Helper()
		method := "POST"
		if body == "" {
			method = "GET"
		}
		if a := ask(r, clock, "biometric", key, method, target, body); a.status != want {
			t.Errorf("%s: %d %s, want %d", what, a.status, a.body, want)
		}
	}
	f("the first", "app", "/v1.1/tags", "", 200)
	f("verification by id counts", "app", "/v1.1/face/verify", verify, 404)
	f("the application is over its rate", "app", "/v1.1/tags", "", 429)
	f("so with a verification by id", "app", "/v1.1/face/verify", verify, 429)
	f("and with a wrong body, as far as the key is known", "app", "/v1/face/verify", "[]", 429)
	f("not with one that needs no key", "app", "/v1.1/face/verify", faces, 200)
	f("another application", "second", "/v1.1/tags", "", 200)
	f("an unknown key is charged to the tenant", "nobody", "/v1.1/tags", "", 403)
	f("so is a body that is none", "second", "/v1.1/face/verify", "[]", 400)
	f("the tenant is over its rate", "second", "/v1.1/tags", "", 429)
	f("with every operation", "", "/v1.1/face/verify", faces, 429)
}

func TestRolesPermitWhatD5Says(t *testing.T) {
	t.Parallel()
	readOnly := map[string]bool{
		"GET /openapi.json": true, "GET /v1.1/health": true, "GET /v1.1/whoami": true, "GET /v1.1/subjects": true, "GET /v1.1/subjects/{subjectId}/events": true, "GET /v1.1/tags": true,
		"GET /v1.1/jobs/bulkregister": true, "GET /v1.1/jobs/bulkregister/{batchId}": true, "GET /v1.1/jobs/bulkregister/{batchId}/{pagingId?}": true,
		"POST /v1.1/face/extract": true, "POST /v1.1/face/verify": true, "POST /v1.1/face/search": true,
		"POST /v1.1/face/compare": true, "GET /v1.1/cases/{caseId}": true,
		"POST /v1/face/extract": true, "POST /v1/face/verify": true, "POST /v1/face/search": true,
	}
	for _, op := range operations {
		name := op.method + " " + op.pattern
		portal := strings.HasPrefix(op.pattern, "/api/")
		if got := permits(router.RoleReadOnly, op.right); got != readOnly[name] {
			t.Errorf("%s for read-only keys: %v", name, got)
		}
		whole := name == "POST /v1.1/face/matches" || strings.HasPrefix(op.pattern, "/v1.1/jobs/duplicates") || // shows whole galleries
			strings.HasPrefix(op.pattern, "/v1.1/cases") && name != "GET /v1.1/cases/{caseId}" // is for people
		if got := permits(router.RoleBiometric, op.right); got == (portal || whole) {
			t.Errorf("%s for biometric keys: %v", name, got)
		}
		if none := op.right == anybody; !permits(router.RoleAdmin, op.right) || permits(0, op.right) != none || permits(99, op.right) != none {
			t.Errorf("%s: for admin %v, for no role %v", name, permits(router.RoleAdmin, op.right), permits(0, op.right))
		}
		if needsKey := op.key != keyIgnored; portal && needsKey {
			t.Errorf("%s needs an API key", name)
		}
	}
}
