package audit

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// countAge is how old a count of a tenant's records may be before it is fetched again.
const countAge = time.Second

// count is how many records with contents a tenant's log had a moment ago.
type count struct {
	records uint64
	at      time.Time // of the last attempt to fetch it
}

// Full reports whether a tenant's log had as many records as the tenant's quota allows, about a second ago. It
// waits for nothing: a node that does not know the number yet says no.
func (r *Recorder) Full(tenant id.Tenant) bool {
	most := r.cfg.Log.AuditMost(tenant)
	if most >= metafsm.QuotaMax {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[tenant]
	if c == nil {
		c = &count{}
		r.counts[tenant] = c
	}
	if !r.closed && time.Since(c.at) >= countAge {
		c.at = time.Now()
		r.senders.Go(func() { r.fetch(tenant, c) }) // ends after sendTimeout at the latest
	}
	return c.records >= most
}

// fetch counts the records of a tenant. After an error the old number stays.
func (r *Recorder) fetch(tenant id.Tenant, c *count) {
	ctx, cancel := context.WithTimeout(r.stop, sendTimeout)
	defer cancel()
	head, err := r.cfg.Log.AuditHead(ctx, tenant)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.records = head.Size - head.Bare
}
