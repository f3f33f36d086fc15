package httpapi

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"facet/internal/id"
)

// Rate bounds requests: Burst at once, PerSecond in the long run. The zero Rate is
// unbounded. A Burst below 1 becomes the requests of one second.
type Rate struct {
	PerSecond float64
	Burst     int
}

// reasonRateLimit tells a client that its own rate is too high, not the load on the
// service.
const reasonRateLimit = "RateLimit"

// rates bounds the requests of every tenant and every application. Each has a
// bucket of its own and takes nothing from another. The bounds hold for this node:
// a cluster of three admits three times as many requests.
type rates struct {
	mu           sync.Mutex // guards tenants, applications and health; held for arithmetic and Config.Quota only
	tenants      buckets
	applications buckets
	health       buckets // of access keys
}

// Bounds of the requests of an access key for health.
const (
	healthPerSecond = 10
	healthBurst     = 50
)

// newRates returns rates with these bounds.
func newRates(tenant, application Rate) *rates {
	return &rates{
		tenants: newBuckets(tenant), applications: newBuckets(application),
		health: newBuckets(Rate{PerSecond: healthPerSecond, Burst: healthBurst}),
	}
}

// set changes the bounds. Buckets of another size are replaced by full ones.
func (r *rates) set(tenant, application Rate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tenants.size, r.applications.size = sizeOf(tenant), sizeOf(application)
}

// charge is what a request takes of a bucket: n tokens, beyond those that it has taken. A bucket of
// fewer tokens gives all of them.
type charge struct{ n, taken int }

// one is the charge of a request without further photos.
var one = charge{n: 1}

// of returns how many tokens the charge is in a bucket of this size.
func (c charge) of(size bucketSize) int { return min(c.n, size.burst-c.taken) }

// again returns the charge of the same request when it comes back.
func (c charge) again() charge { return charge{n: c.n + c.taken} }

// blocked returns how long tenant has to wait for the charge, 0 when it need not wait. It
// takes no token.
func (r *rates) blocked(now time.Time, tenant id.Tenant, c charge) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tenants.wait(now, tenant.UUID, c)
}

// take takes the charge of tenant and, unless it is zero, of application, and returns 0.
// When either has too few tokens, it takes none and returns after how long the request
// may come back.
func (r *rates) take(now time.Time, tenant id.Tenant, application id.Application, c charge) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := application != id.Application{}
	wait := func(c charge) time.Duration {
		w := r.tenants.wait(now, tenant.UUID, c)
		if known {
			w = max(w, r.applications.wait(now, application.UUID, c))
		}
		return w
	}
	if wait(c) > 0 {
		return wait(c.again())
	}
	r.tenants.take(now, tenant.UUID, c)
	if known {
		r.applications.take(now, application.UUID, c)
	}
	return 0
}

// takeHealth takes a request of an access key for health and returns 0, or after how long the next one may come.
func (r *rates) takeHealth(now time.Time, accessKey string) time.Duration {
	name := pairOf(accessKey, netip.Addr{})
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := r.health.wait(now, name, one)
	if wait == 0 {
		r.health.take(now, name, one)
	}
	return wait
}

// buckets is a set of token buckets. A full bucket behaves like a missing one, so full
// ones are dropped when room is needed.
type buckets struct {
	size bucketSize
	// own returns the rate of one bucket, in the place of size; nil if all have the same.
	own   func(name id.UUID) Rate
	of    map[id.UUID]*rate.Limiter
	swept time.Time
}

// bucketSize is a Rate in the form that the arithmetic needs.
type bucketSize struct {
	perSecond rate.Limit // 0 is unbounded
	burst     int
}

func sizeOf(r Rate) bucketSize {
	if !(r.PerSecond > 0) { // also false for NaN
		return bucketSize{}
	}
	burst := r.Burst
	if burst < 1 {
		burst = int(min(max(1, math.Ceil(r.PerSecond)), math.MaxInt32))
	}
	return bucketSize{rate.Limit(r.PerSecond), burst}
}

// newBuckets returns buckets for r.
func newBuckets(r Rate) buckets {
	return buckets{size: sizeOf(r), of: make(map[id.UUID]*rate.Limiter)}
}

// get returns name's bucket and its size. The bucket is nil if there is none, or if its rate
// was changed since.
func (b *buckets) get(name id.UUID) (*rate.Limiter, bucketSize) {
	size, l := b.size, b.of[name]
	if b.own != nil {
		size = sizeOf(b.own(name))
	}
	if l != nil && (l.Limit() != size.perSecond || l.Burst() != size.burst) {
		delete(b.of, name)
		return nil, size
	}
	return l, size
}

// wait returns the time until name's bucket has the charge.
func (b *buckets) wait(now time.Time, name id.UUID, c charge) time.Duration {
	l, size := b.get(name)
	if l == nil {
		return 0
	}
	lacking := float64(c.of(size)) - l.TokensAt(now)
	if lacking <= 0 {
		return 0
	}
	seconds := min(lacking/float64(size.perSecond), retryAfterMax.Seconds())
	return time.Duration(seconds * float64(time.Second))
}

// take takes the charge from name's bucket. The caller knows that it has it.
func (b *buckets) take(now time.Time, name id.UUID, c charge) {
	l, size := b.get(name)
	if size.perSecond == 0 {
		return
	}
	if l == nil {
		if len(b.of) >= bucketsMax {
			b.makeRoom(now)
		}
		l = rate.NewLimiter(size.perSecond, size.burst)
		b.of[name] = l
	}
	l.AllowN(now, c.of(size))
}

// makeRoom drops the full buckets. If none is full it drops any one: its owner gets
// a burst too many, which is better than refusing a client. It searches for full
// ones once a second at most.
func (b *buckets) makeRoom(now time.Time) {
	if now.Sub(b.swept) >= time.Second {
		b.swept = now
		for name, l := range b.of {
			if l.TokensAt(now) >= float64(l.Burst()) {
				delete(b.of, name)
			}
		}
	}
	for name := range b.of {
		if len(b.of) < bucketsMax {
			return
		}
		delete(b.of, name)
	}
}

// tooFast returns the answer to a client over its rate, which may retry after wait.
func tooFast(wait time.Duration) *failure {
	f := gateway(fasthttp.StatusTooManyRequests, "Too many requests.")
	f.body.Reason = reasonRateLimit
	f.retryAfter = wait
	return f
}

// tenantTooFast is tooFast for a tenant over its quota of requests.
func tenantTooFast(wait time.Duration) *failure {
	f := tooFast(wait)
	f.body.Quota = quotaRequests
	return f
}
