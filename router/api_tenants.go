package router

import (
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
)

// AuditReadMax is the most entries of an audit log that one call returns.
const AuditReadMax = 256

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

// AddTaken adds what a tenant has taken on a shard to what it has used.
func AddTaken(used map[metafsm.Quota]uint64, t shardfsm.Taken) {
	used[metafsm.QuotaWrites], used[metafsm.QuotaJobs], used[metafsm.QuotaJobItems] = uint64(t.Writes), uint64(t.Jobs), uint64(t.Items)
	used[metafsm.QuotaAuditRecords] = t.Records
}
