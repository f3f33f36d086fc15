package httpapi

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/node/audit"
	"facet/node/sigv4"
	"facet/router"
)

// Bounds of requests with a wrong signature.
const (
	failuresBurst     = 20      // of an access key and address at once
	failuresPerSecond = 1. / 3  // of these in the long run
	provenMax         = 1 << 14 // access keys with addresses that proved right lately, in each of two generations
)

// reasonSignatures is the reason of refusals after too many wrong signatures.
const reasonSignatures = "WrongSignatures"

// failures slows clients whose signatures are wrong again and again. It counts them
// by access key and address, whether or not the key exists, and answers at once when
// there are too many: no connection and no goroutine waits.
//
// Others behind the same gateway keep their way. Those with other keys have counters
// of their own. Those with the same key are served as long as one of them proved it
// lately: the node then checks every signature, and only wrong ones are refused.
type failures struct {
	mu     sync.Mutex // guards counts and proven; held for arithmetic only
	counts buckets
	proven recent[id.UUID]
}

func newFailures() *failures {
	return &failures{counts: newBuckets(Rate{PerSecond: failuresPerSecond, Burst: failuresBurst}), proven: recent[id.UUID]{max: provenMax}}
}

// pairOf returns the name of an access key and an address.
func pairOf(accessKey string, from netip.Addr) id.UUID {
	address := from.As16()
	sum := sha256.Sum256(append(address[:], accessKey...))
	return id.UUID(sum[:])
}

// blocked returns how long a pair has to wait because of its failures, 0 when it need
// not wait, and whether it proved right lately.
func (f *failures) blocked(now time.Time, pair id.UUID) (wait time.Duration, proven bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.wait(now, pair, one), f.proven.has(pair)
}

// failed counts a wrong signature.
func (f *failures) failed(now time.Time, pair id.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts.take(now, pair, one)
}

// proved notes a right signature.
func (f *failures) proved(pair id.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proven.add(pair)
}

// disproved notes that the access key of a pair does not exist any more.
func (f *failures) disproved(pair id.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proven.remove(pair)
}

// wrongTooOften returns the answer to a client whose signatures were wrong too often.
func wrongTooOften(wait time.Duration) *failure {
	f := gateway(fasthttp.StatusTooManyRequests, "Too many wrong signatures: check the access key and its secret.")
	f.body.Reason = reasonSignatures
	f.retryAfter = wait
	return f
}

// recent contains names that were added lately. When young has max names it replaces
// old, and the names in old are forgotten.
type recent[N comparable] struct {
	max        int
	young, old map[N]struct{}
}

func (r *recent[N]) has(name N) bool {
	_, young := r.young[name]
	_, old := r.old[name]
	return young || old
}

func (r *recent[N]) add(name N) {
	if _, ok := r.young[name]; ok {
		return
	}
	if r.young == nil || len(r.young) >= r.max {
		r.young, r.old = make(map[N]struct{}), r.young
	}
	r.young[name] = struct{}{}
}

func (r *recent[N]) remove(name N) {
	delete(r.young, name)
	delete(r.old, name)
}

// attempt is a request whose signature is to be checked. It becomes one with a wrong signature.
type attempt struct {
	claim *sigv4.Claim
	key   router.AccessKey // zero if it is unknown
	pair  id.UUID
	wait  time.Duration // until the pair may try again, or 0
	// proven reports that the pair has sent a right signature lately.
	proven bool
	// known reports that there is such an access key, and seen that it was looked up lately. The look-up began
	// at began.
	known, seen bool
	began       time.Time
	refusal     error
}

// wrong counts an attempt, and returns its refusal.
func (s *Server) wrong(ctx context.Context, rc *fasthttp.RequestCtx, a *attempt) error {
	why := audit.WrongSignature
	if !a.known {
		why = audit.UnknownKey
		s.failures.disproved(a.pair)
	}
	s.refused(rc, why)
	if a.wait > 0 {
		return wrongTooOften(a.wait)
	}
	s.failures.failed(s.cfg.Now(), a.pair)
	if a.known {
		if err := s.likeUnknown(ctx, a.seen, a.began); err != nil {
			return err
		}
	}
	return a.refusal
}

// likeUnknown does for a known access key with a wrong signature what the look-up of
// an unknown one did, so that the time of the refusal does not reveal whether the key
// exists. The look-up of an unknown key passes the gate and asks the cluster. The
// look-up of this one began at began; it passed the gate only if the key was not seen
// lately.
func (s *Server) likeUnknown(ctx context.Context, seen bool, began time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTimeout)
	defer cancel()
	if seen {
		if err := s.accessKeys.wait(ctx, gateName{}); err != nil {
			return err
		}
	}
	return s.cfg.Service.SyncMetaSince(ctx, began)
}
