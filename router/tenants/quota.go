package tenants

import (
	"context"
	"errors"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
)

// SetQuotas sets quotas of a tenant; 0 stands for the default. It returns all of them, with
// the use that meta knows. The error is NotFound when there is no such tenant.
func (r *TenantRequests) SetQuotas(ctx context.Context, tenant id.Tenant, quotas []metafsm.QuotaValue) (none router.TenantUse, err error) {
	for _, v := range quotas {
		if v.Most > metafsm.QuotaMax {
			return none, router.Errorf(router.InvalidRequest, "", "the quota %s is at most %d", v.Quota, uint64(metafsm.QuotaMax))
		}
	}
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetTenantOp, metafsm.SetTenant{Tenant: tenant, Quotas: quotas})
	if err == nil && a.Status == metafsm.UnknownTenant {
		err = router.Errorf(router.NotFound, "", "there is no such tenant")
	}
	if err != nil {
		return none, err
	}
	// The quotas are set now, so nothing may fail from here on. This node may learn them later.
	meta, record := r.cluster.Groups.Meta(), metafsm.Tenant{ID: tenant}
	for _, t := range meta.Tenants() {
		if t.ID == tenant {
			record = t
		}
	}
	return tenantUse(record.With(quotas), meta.Used()[tenant], shardfsm.Taken{}, true), nil
}

// takenWait is the longest wait for the use of quotas on the shards.
const takenWait = 5 * time.Second

// Tenants returns all tenants, in order of creation, with their quotas. Their use is
// incomplete if a shard gives no answer.
func (r *TenantRequests) Tenants(ctx context.Context) ([]router.TenantUse, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return nil, err
	}
	meta := r.cluster.Groups.Meta()
	taken, incomplete := taken(ctx, r.cluster)
	list, all := []router.TenantUse{}, meta.Used()
	for _, t := range meta.Tenants() {
		list = append(list, tenantUse(t, all[t.ID], taken[t.ID], incomplete))
	}
	return list, nil
}

// taken returns what the tenants have taken, each on the shard with the most. incomplete
// reports that a shard gave no answer.
func taken(ctx context.Context, r *cluster.Cluster) (taken map[id.Tenant]shardfsm.Taken, incomplete bool) {
	ctx, cancel := context.WithTimeout(ctx, takenWait)
	defer cancel()
	shards := r.Shards()
	failed := make([]error, len(shards))
	answers, _ := calls.ScatterBy(ctx, len(shards), func(ctx context.Context, i int) (list []tenantTaken, _ error) {
		list, failed[i] = calls.CallLeader(ctx, r.Calls, shardTaken, shards[i], struct{}{})
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
func tenantUse(t metafsm.Tenant, used map[metafsm.Quota]uint64, taken shardfsm.Taken, incomplete bool) router.TenantUse {
	if used == nil {
		used = map[metafsm.Quota]uint64{}
	}
	router.AddTaken(used, taken)
	u := router.TenantUse{ID: t.ID, Name: t.Name, State: t.State, Audit: metafsm.Audit{Mode: t.Audit.Mode, Days: t.Audit.Days}}
	for _, q := range metafsm.Quotas() {
		most, own := t.Most(q)
		onShards := q == metafsm.QuotaWrites || q == metafsm.QuotaJobs || q == metafsm.QuotaJobItems || q == metafsm.QuotaAuditRecords
		u.Quotas = append(u.Quotas, router.QuotaUse{Quota: q, Used: used[q], Most: most, Own: own, Incomplete: incomplete && onShards})
	}
	return u
}

// tenantTaken is the use of one tenant on a shard.
type tenantTaken struct {
	Tenant id.Tenant      `cbor:"1,keyasint"`
	Taken  shardfsm.Taken `cbor:"2,keyasint"`
}

// shardTaken returns what the tenants have taken on a shard, as its leader knows it.
var shardTaken = cluster.MachineRead("shard.taken", func(m *shardfsm.Machine, _ struct{}) ([]tenantTaken, error) {
	var list []tenantTaken
	for t, taken := range m.Taken() { // any order will do
		list = append(list, tenantTaken{t, taken})
	}
	return list, nil
})
