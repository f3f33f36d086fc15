package router

import (
	"context"
	"errors"
	"math"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/operation"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

// forgetRetry is how long the files of a gallery rest whose tenant has too many remembered
// writes. It is also the Retry-After of a write that is refused for that when its group does
// not say from when on it has room.
const forgetRetry = time.Minute

// overQuota returns the error for what would exceed a quota of the tenant. After that time
// there may be room; 0 stands for quotas with which time alone makes none.
func overQuota(q metafsm.Quota, after time.Duration) error {
	e := Errorf(OverQuota, q.String(), "the tenant's quota %q is used up", q)
	e.RetryAfter = after
	switch q {
	case metafsm.QuotaChanges, metafsm.QuotaWrites:
		e.Message += ": too many of its recent writes are remembered; try again later, or ask an operator for more"
	case metafsm.QuotaJobs, metafsm.QuotaJobItems: // a tenant can delete jobs only with their gallery
		e.Message += ": its jobs are kept for 30 days; try again later, or ask an operator for more"
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

// share returns what a tenant may have a shard remember, for a command.
func share(r *cluster, of id.Tenant) shardfsm.Share {
	return shardfsm.Share{Tenant: of, Writes: most(r.groups.Meta(), of, metafsm.QuotaWrites)}
}

// room refuses a write that its shard has no room to remember. It is asked before the models
// run on an image; the command decides. This node's replica may say yes. A no is the leader's,
// since a replica that is behind may not know that the write was done before.
func room(ctx context.Context, r *cluster, at id.Shard, of id.Tenant, w Write) error {
	q := roomQuery{Op: w.Operation, Keyed: w.Keyed, Share: share(r, of)}
	if m, ok := r.groups.Shard(at); ok && q.ask(m).Refusal == 0 {
		return nil
	}
	return leaderRoom(ctx, r, at, q)
}

// leaderRoom refuses a write if its shard's leader has no room to remember it.
func leaderRoom(ctx context.Context, r *cluster, at id.Shard, q roomQuery) error {
	if q.Share.Tenant.IsZero() {
		return nil // a node does not know the method
	}
	a, err := calls.CallLeader(ctx, r.calls, shardRoom, at, q)
	switch {
	case err != nil:
		return err
	case a.Refusal == shardfsm.OverWrites:
		return overQuota(metafsm.QuotaWrites, waitUntil(a.At))
	case a.Refusal != 0:
		return operationsFull(waitUntil(a.At))
	default:
		return nil
	}
}

// refusal returns the error for the status of a write on a shard, and nil for success. The
// shard says from when on it has room.
func refusal(ctx context.Context, r *cluster, s shardfsm.Status, at id.Shard, of id.Tenant, w Write) error {
	if s == shardfsm.OverWrites || s == shardfsm.OpsFull {
		q := roomQuery{Op: w.Operation, Keyed: w.Keyed, Share: share(r, of)}
		if err := leaderRoom(ctx, r, at, q); err != nil {
			return err
		}
	}
	return writeError(s)
}

// enrolRefusal is refusal for the answer to a write of an event.
func enrolRefusal(ctx context.Context, r *cluster, a shardfsm.RegisterAnswer, at id.Shard, of id.Tenant, w Write) error {
	if a.Status == shardfsm.Refused {
		return externalTaken(a.Subject)
	}
	return refusal(ctx, r, a.Status, at, of, w)
}

// roomQuery asks whether a shard has room to remember a write.
type roomQuery struct {
	Op    id.Operation   `cbor:"1,keyasint"`
	Keyed bool           `cbor:"2,keyasint,omitempty"`
	Share shardfsm.Share `cbor:"3,keyasint"`
}

func (q roomQuery) ask(m *shardfsm.Machine) (a roomAnswer) {
	a.At, a.Refusal = m.RoomAt(time.Now().UnixMilli(), operation.Name{Op: q.Op, Keyed: q.Keyed}, q.Share)
	return a
}

// roomAnswer is the result of shardfsm.Machine.RoomAt.
type roomAnswer struct {
	At      int64           `cbor:"1,keyasint,omitempty"`
	Refusal shardfsm.Status `cbor:"2,keyasint,omitempty"`
}

// shardRoom answers a roomQuery on the shard's leader.
var shardRoom = calls.NewMethod("shard.room", func(ctx context.Context, r *cluster, group id.Shard, q roomQuery) (roomAnswer, error) {
	m, err := r.leaderMachine(ctx, group)
	if err != nil {
		return roomAnswer{}, err
	}
	return q.ask(m), nil
})

// changeWait returns the Retry-After of a change that meta has no room to remember.
func changeWait(ctx context.Context, r *cluster, of id.Tenant, w metafsm.Write) time.Duration {
	if err := r.sync.Join(ctx); err != nil { // this node may not know what the leader has refused
		return forgetRetry
	}
	return waitUntil(r.groups.Meta().RoomAt(of, w.Keyed))
}

// waitUntil returns the time from now until the time at in milliseconds since 1970, at least
// a second.
func waitUntil(at int64) time.Duration {
	return max(time.Until(time.UnixMilli(at)), time.Second)
}

// jobShare returns what a tenant may have a shard keep of jobs, as share.
func jobShare(r *cluster, of id.Tenant) shardfsm.JobShare {
	meta := r.groups.Meta()
	return shardfsm.JobShare{Tenant: of, Jobs: most(meta, of, metafsm.QuotaJobs), Items: most(meta, of, metafsm.QuotaJobItems)}
}

func most(meta *metafsm.Machine, of id.Tenant, q metafsm.Quota) uint32 {
	n, _ := meta.Most(of, q)
	return uint32(min(n, math.MaxUint32))
}

// SetQuotas sets quotas of a tenant; 0 stands for the default. It returns all of them, with
// the use that meta knows. The error is NotFound when there is no such tenant.
func (r *accessRequests) SetQuotas(ctx context.Context, tenant id.Tenant, quotas []metafsm.QuotaValue) (none TenantUse, err error) {
	for _, v := range quotas {
		if v.Most > metafsm.QuotaMax {
			return none, Errorf(InvalidRequest, "", "the quota %s is at most %d", v.Quota, uint64(metafsm.QuotaMax))
		}
	}
	a, err := proposeMeta(ctx, r.cluster, metafsm.SetTenantOp, metafsm.SetTenant{Tenant: tenant, Quotas: quotas})
	if err == nil && a.Status == metafsm.UnknownTenant {
		err = Errorf(NotFound, "", "there is no such tenant")
	}
	if err != nil {
		return none, err
	}
	// The quotas are set now, so nothing may fail from here on. This node may learn them later.
	meta, record := r.cluster.groups.Meta(), metafsm.Tenant{ID: tenant}
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
	State  metafsm.TenantState
	Quotas []QuotaUse
	// Audit is how the audit log is kept, without its key.
	Audit metafsm.Audit
}

// takenWait is the longest wait for the use of quotas on the shards.
const takenWait = 5 * time.Second

// Tenants returns all tenants, in order of creation, with their quotas. Their use is
// incomplete if a shard gives no answer.
func (r *accessRequests) Tenants(ctx context.Context) ([]TenantUse, error) {
	if err := r.cluster.sync.Join(ctx); err != nil {
		return nil, err
	}
	meta := r.cluster.groups.Meta()
	taken, incomplete := taken(ctx, r.cluster)
	list, all := []TenantUse{}, meta.Used()
	for _, t := range meta.Tenants() {
		list = append(list, tenantUse(t, all[t.ID], taken[t.ID], incomplete))
	}
	return list, nil
}

// taken returns what the tenants have taken, each on the shard with the most. incomplete
// reports that a shard gave no answer.
func taken(ctx context.Context, r *cluster) (taken map[id.Tenant]shardfsm.Taken, incomplete bool) {
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
	u := TenantUse{ID: t.ID, Name: t.Name, State: t.State, Audit: metafsm.Audit{Mode: t.Audit.Mode, Days: t.Audit.Days}}
	for _, q := range metafsm.Quotas() {
		most, own := t.Most(q)
		onShards := q == metafsm.QuotaWrites || q == metafsm.QuotaJobs || q == metafsm.QuotaJobItems || q == metafsm.QuotaAuditRecords
		u.Quotas = append(u.Quotas, QuotaUse{Quota: q, Used: used[q], Most: most, Own: own, Incomplete: incomplete && onShards})
	}
	return u
}

// AddTaken adds what a tenant has taken on a shard to what it has used.
func AddTaken(used map[metafsm.Quota]uint64, t shardfsm.Taken) {
	used[metafsm.QuotaWrites], used[metafsm.QuotaJobs], used[metafsm.QuotaJobItems] = uint64(t.Writes), uint64(t.Jobs), uint64(t.Items)
	used[metafsm.QuotaAuditRecords] = t.Records
}

// tenantTaken is the use of one tenant on a shard.
type tenantTaken struct {
	Tenant id.Tenant      `cbor:"1,keyasint"`
	Taken  shardfsm.Taken `cbor:"2,keyasint"`
}

// shardTaken returns what the tenants have taken on a shard, as its leader knows it.
var shardTaken = calls.NewMethod("shard.taken", func(ctx context.Context, r *cluster, group id.Shard, _ struct{}) ([]tenantTaken, error) {
	m, err := r.leaderMachine(ctx, group)
	if err != nil {
		return nil, err
	}
	var list []tenantTaken
	for t, taken := range m.Taken() { // any order will do
		list = append(list, tenantTaken{t, taken})
	}
	return list, nil
})
