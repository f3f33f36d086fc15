package httpapi

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// reasonQuota is the reason of refusals because a quota of the tenant is used up.
const reasonQuota = "Quota"

// The names of the quotas that a node keeps by itself, as in package metafsm.
const (
	quotaRequests = "requests"
	quotaSearches = "searches"
	quotaRecords  = "auditRecords"
)

// searchesRetry is the Retry-After of a search that exceeds the quota.
const searchesRetry = time.Second

// Quota holds the bounds of one tenant on this node.
type Quota struct {
	// Requests bounds the tenant's requests, in the place of Limits.TenantRate.
	Requests Rate
	// Searches is the most searches in work, waiting ones included. 0 is no bound.
	Searches int
}

// inWork counts the searches of each tenant that are in work. It is safe for concurrent
// use.
type inWork struct {
	mu sync.Mutex // guards of; held for arithmetic only
	of map[id.Tenant]int
}

// enter counts a search and returns true, unless the tenant has most of them.
func (w *inWork) enter(who id.Tenant, most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if most > 0 && w.of[who] >= most {
		return false
	}
	w.of[who]++
	return true
}

// leave ends a search that enter has counted.
func (w *inWork) leave(who id.Tenant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[who]--; w.of[who] == 0 {
		delete(w.of, who)
	}
}

// full reports whether enter would return false.
func (w *inWork) full(who id.Tenant, most int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return most > 0 && w.of[who] >= most
}

// ofQuota returns the answer to a request that exceeds a quota. Without after, time alone
// makes no room.
func ofQuota(quota, message string, after time.Duration) *failure {
	f := gateway(fasthttp.StatusTooManyRequests, message)
	f.body.Reason, f.body.Quota = reasonQuota, quota
	f.retryAfter = after
	return f
}

// tooManySearches returns the answer to a search that exceeds the tenant's quota.
func tooManySearches() *failure {
	return ofQuota(quotaSearches, "The tenant has too many searches in work.", searchesRetry)
}

// tooManyRecords returns the answer to a request whose record would exceed the tenant's quota.
func tooManyRecords() *failure {
	return ofQuota(quotaRecords, "The tenant's audit log has as many records as its quota allows. Ask an operator to raise the quota auditRecords, or to let records expire earlier; removals and reads go on.", 0)
}

// overQuota returns the answer for a router error of the kind OverQuota.
func overQuota(e *router.Error) *failure { return ofQuota(e.Reason, e.Sentence(), e.RetryAfter) }
