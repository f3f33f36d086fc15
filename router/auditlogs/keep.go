package auditlogs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/auditlog"
)

// EnsureClusterLog begins the cluster's audit log if this node leads its shard, so that each node can record
// without asking another one.
func (r *AuditRequests) EnsureClusterLog(ctx context.Context) error {
	a := r.Audit(id.ClusterLog)
	if a.Mode == metafsm.AuditOff || len(a.WrappedKey) > 0 {
		return nil
	}
	if _, _, ok := cluster.LedShard(r.cluster.Groups, r.auditHome(id.ClusterLog)); !ok {
		return nil // another node does it
	}
	_, err := r.BeginAudit(ctx, id.ClusterLog)
	return err
}

// AuditLogs returns the tenants whose audit logs this node leads, and id.ClusterLog.
func (r *AuditRequests) AuditLogs() (list []id.Tenant) {
	for _, s := range r.cluster.Shards() {
		if _, m, ok := cluster.LedShard(r.cluster.Groups, s); ok {
			list = append(list, m.Audit().Tenants()...)
		}
	}
	return list
}

// OpenIntents returns the oldest open intents of a log that this node leads, at most most.
func (r *AuditRequests) OpenIntents(tenant id.Tenant, most int) []auditlog.Intent {
	m, here := r.cluster.Groups.Shard(r.auditHome(tenant))
	if !here {
		return nil
	}
	return m.Audit().Intents(tenant, most)
}

// Remembers reports whether a shard remembers an operation: a write of faces or subjects that it has
// carried out or refused in the last minutes.
func (r *AuditRequests) Remembers(ctx context.Context, op id.Operation) (bool, error) {
	found, err := calls.Scatter(ctx, r.cluster.Calls, shardRemembers, r.cluster.Shards(), op)
	return slices.Contains(found, true), err
}

var shardRemembers = cluster.MachineRead("shard.remembers", func(m *shardfsm.Machine, op id.Operation) (bool, error) {
	return m.Remembers(op), nil
})

// AuditDays returns how many days the records of a tenant, or of the cluster, keep their contents. ok is false
// without the tenant.
func (r *AuditRequests) AuditDays(tenant id.Tenant) (days uint32, ok bool) {
	if tenant != id.ClusterLog && r.cluster.Groups.Meta().TenantState(tenant) == metafsm.TenantDeleting {
		return 0, false // or meta does not have the tenant
	}
	return metafsm.AuditOf(r.cluster.Groups.Meta(), tenant).Retention(), true
}

// ExpireAudit removes the contents of a log's first entries, up to and without the one at before. Only the node
// that leads the log can: no node takes another one's word for what has expired.
func (r *AuditRequests) ExpireAudit(ctx context.Context, tenant id.Tenant, before uint64) error {
	g, _, err := r.cluster.LocalReplica(r.auditHome(tenant))
	if err != nil {
		return err
	}
	a, err := cluster.Propose(ctx, g, shardfsm.ExpireLogOp, shardfsm.ExpireLog{Tenant: tenant, Before: before})
	if err == nil && a.Status != shardfsm.Done {
		err = fmt.Errorf("expire records of tenant %s: the shard answered %v", tenant, a.Status)
	}
	return err
}

// SettleAudit writes the snapshots of the shards on this node whose audit logs have more than most bytes
// of records in memory. The records are in files then.
func (r *AuditRequests) SettleAudit(most int64) error {
	var failed []error
	for _, s := range r.cluster.Shards() {
		m, here := r.cluster.Groups.Shard(s)
		if g, _, err := r.cluster.LocalReplica(s); err == nil && here && m.Audit().TailBytes() > most {
			failed = append(failed, g.Snapshot())
		}
	}
	return errors.Join(failed...)
}
