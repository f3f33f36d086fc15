package router

import (
	"context"
	"errors"
	"math"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

// forgetRetry is the Retry-After of a write that is refused because the tenant has too many
// remembered ones. A group forgets the oldest all the time.
const forgetRetry = time.Minute

// overQuota returns the error for what would exceed a quota of the tenant.
func overQuota(q metafsm.Quota) error {
	e := Errorf(OverQuota, q.String(), "the tenant's quota %q is used up", q)
	switch q {
	case metafsm.QuotaChanges, metafsm.QuotaWrites:
		e.Message += ": too many of its recent writes are remembered; try again later"
		e.RetryAfter = forgetRetry
	case metafsm.QuotaJobs, metafsm.QuotaJobItems: // a tenant can delete jobs only with their gallery
		e.Message += ": its jobs are kept for 30 days; try again later, or ask an operator for more"
		e.RetryAfter = bulkFullRetry
	default:
		e.Message += "; delete something, or ask an operator for more"
	}
	return e
}

// metaQuotas maps a status of meta to the quota that the command would exceed.
var metaQuotas = map[metafsm.Status]metafsm.Quota{
	metafsm.OverSubjects: metafsm.QuotaSubjects, metafsm.OverGalleries: metafsm.QuotaGalleries,
	metafsm.OverApplications: metafsm.QuotaApplications, metafsm.OverAccessKeys: metafsm.QuotaAccessKeys,
	metafsm.OverChanges: metafsm.QuotaChanges,
}

// share returns what a tenant may have a shard remember, for a command. It is zero as long as
// a node can't read it.
func (r *cluster) share(of id.Tenant) shardfsm.Share {
	meta := r.groups.Meta()
	if meta.Level() < metafsm.LevelQuotas {
		return shardfsm.Share{}
	}
	return shardfsm.Share{Tenant: of, Writes: most(meta, of, metafsm.QuotaWrites)}
}

// jobShare returns what a tenant may have a shard keep of jobs, as share.
func (r *cluster) jobShare(of id.Tenant) shardfsm.JobShare {
	meta := r.groups.Meta()
	if meta.Level() < metafsm.LevelQuotas {
		return shardfsm.JobShare{}
	}
	return shardfsm.JobShare{Tenant: of, Jobs: most(meta, of, metafsm.QuotaJobs), Items: most(meta, of, metafsm.QuotaJobItems)}
}

func most(meta *metafsm.Machine, of id.Tenant, q metafsm.Quota) uint32 {
	n, _ := meta.Most(of, q)
	return uint32(min(n, math.MaxUint32))
}

// SetQuotas sets quotas of a tenant; 0 stands for the default. It returns all of them, with
// the use that meta knows. The error is NotFound when there is no such tenant, and Unavailable
// while a node of the cluster can't read quotas.
func (r *accessRequests) SetQuotas(ctx context.Context, tenant id.Tenant, quotas []metafsm.QuotaValue) (none TenantUse, err error) {
	for _, v := range quotas {
		if v.Most > metafsm.QuotaMax {
			return none, Errorf(InvalidRequest, "", "the quota %s is at most %d", v.Quota, uint64(metafsm.QuotaMax))
		}
	}
	if r.groups.Meta().Level() < metafsm.LevelQuotas {
		return none, &Error{Kind: Unavailable, Message: "a node of the cluster runs software without quotas; upgrade all nodes first", RetryAfter: calls.RetryLater}
	}
	a, err := proposeMeta(ctx, r.cluster, metafsm.SetTenantOp, metafsm.SetTenant{Tenant: tenant, Quotas: quotas})
	if err == nil && a.Status == metafsm.UnknownTenant {
		err = Errorf(NotFound, "", "there is no such tenant")
	}
	if err != nil {
		return none, err
	}
	// The quotas are set now, so nothing may fail from here on. This node may learn them later.
	meta, record := r.groups.Meta(), metafsm.Tenant{ID: tenant}
	for _, t := range meta.Tenants() {
		if t.ID == tenant {
			record = t
		}
	}
	return tenantUse(record.With(quotas), meta.Used()[tenant], shardfsm.Taken{}, true), nil
}

// QuotaUse is a quota of a tenant.
type QuotaUse struct {
	Quota metafsm.Quota
	// Used is 0 for quotas that each node keeps for itself. For those that each shard keeps,
	// it is that of the shard with the most.
	Used, Most uint64
	Own        bool // not the default
	// Incomplete reports that Used lacks the use on shards that were not asked or gave no
	// answer.
	Incomplete bool
}

// TenantUse is a tenant with all its quotas.
type TenantUse struct {
	ID     id.Tenant
	Name   string
	Quotas []QuotaUse
}

// takenWait is the longest wait for the use of quotas on the shards.
const takenWait = 5 * time.Second

// Tenants returns all tenants, in order of creation, with their quotas. Their use is
// incomplete if a shard gives no answer.
func (r *accessRequests) Tenants(ctx context.Context) ([]TenantUse, error) {
	if err := r.sync.Join(ctx); err != nil {
		return nil, err
	}
	meta := r.groups.Meta()
	taken, incomplete := map[id.Tenant]shardfsm.Taken{}, false
	if meta.Level() >= metafsm.LevelQuotas {
		taken, incomplete = r.taken(ctx)
	}
	list, all := []TenantUse{}, meta.Used()
	for _, t := range meta.Tenants() {
		list = append(list, tenantUse(t, all[t.ID], taken[t.ID], incomplete))
	}
	return list, nil
}

// taken returns what the tenants have taken, each on the shard with the most. incomplete
// reports that a shard gave no answer.
func (r *cluster) taken(ctx context.Context) (taken map[id.Tenant]shardfsm.Taken, incomplete bool) {
	ctx, cancel := context.WithTimeout(ctx, takenWait)
	defer cancel()
	shards := r.Shards()
	failed := make([]error, len(shards))
	answers, _ := calls.ScatterBy(ctx, len(shards), func(ctx context.Context, i int) (list []tenantTaken, _ error) {
		list, failed[i] = calls.CallLeader(ctx, r.calls, shardTaken, shards[i], struct{}{})
		return list, nil // one shard without a leader does not hide the others
	})
	taken = map[id.Tenant]shardfsm.Taken{}
	for _, list := range answers {
		for _, t := range list {
			taken[t.Tenant] = taken[t.Tenant].Larger(t.Taken)
		}
	}
	return taken, errors.Join(failed...) != nil
}

// tenantUse adds what a tenant has taken on shards to what it has used of meta, nil if it is
// newer.
func tenantUse(t metafsm.Tenant, used map[metafsm.Quota]uint64, taken shardfsm.Taken, incomplete bool) TenantUse {
	if used == nil {
		used = map[metafsm.Quota]uint64{}
	}
	AddTaken(used, taken)
	u := TenantUse{ID: t.ID, Name: t.Name}
	for _, q := range metafsm.Quotas() {
		most, own := t.Most(q)
		onShards := q == metafsm.QuotaWrites || q == metafsm.QuotaJobs || q == metafsm.QuotaJobItems
		u.Quotas = append(u.Quotas, QuotaUse{Quota: q, Used: used[q], Most: most, Own: own, Incomplete: incomplete && onShards})
	}
	return u
}

// AddTaken adds what a tenant has taken on a shard to what it has used.
func AddTaken(used map[metafsm.Quota]uint64, t shardfsm.Taken) {
	used[metafsm.QuotaWrites], used[metafsm.QuotaJobs], used[metafsm.QuotaJobItems] = uint64(t.Writes), uint64(t.Jobs), uint64(t.Items)
}

// tenantTaken is the use of one tenant on a shard.
type tenantTaken struct {
	Tenant id.Tenant      `cbor:"1,keyasint"`
	Taken  shardfsm.Taken `cbor:"2,keyasint"`
}

// shardTaken returns what the tenants have taken on a shard, as its leader knows it. It is
// called from metafsm.LevelQuotas on.
var shardTaken = method[struct{}, []tenantTaken]{Name: "shard.taken", Run: func(ctx context.Context, r *Router, group id.Shard, _ struct{}) ([]tenantTaken, error) {
	if _, err := r.leaderState(ctx, group); err != nil {
		return nil, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return nil, &raftfsm.NotLeaderError{}
	}
	var list []tenantTaken
	for t, taken := range m.Taken() { // any order will do
		list = append(list, tenantTaken{t, taken})
	}
	return list, nil
}}
