package backup

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/internal/tiles"
	"facet/node/audit/reading"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// A backup has no audit logs. It has the signed checkpoint of each, so that the log that a restored tenant
// begins can name the one that it follows. That of the cluster's own log is in the manifest. The log of the cluster
// into which the backup is restored has begun already: the act of the restoration names it.

// note adds the present checkpoint of a tenant's audit log to its record.
func (m metaCopier) note(t *metafsm.Tenant) error {
	checkpoint, err := m.checkpoint(t.ID)
	if err == nil && checkpoint != nil {
		t.Audit.Former = checkpoint
	}
	return err
}

// checkpoint returns the signed checkpoint of the audit log of a tenant, or of the cluster (id.ClusterLog). It is nil if
// there is no log.
func checkpoint(ctx context.Context, from Source, tenant id.Tenant) ([]byte, error) {
	c, err := from.Checkpoint(ctx, tenant)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the checkpoint of the audit log of tenant %s: %w", tenant, err)
	case len(c) > metafsm.FormerMax:
		return nil, fmt.Errorf("the checkpoint of the audit log of tenant %s has %d bytes", tenant, len(c))
	}
	return c, nil
}

// Checkpoint returns the signed checkpoint of a tenant's audit log (Source).
func (c copies) Checkpoint(ctx context.Context, tenant id.Tenant) ([]byte, error) {
	if len(metafsm.AuditOf(c.cfg.Replicas.Meta(), tenant).WrappedKey) == 0 {
		return nil, nil // there is no log yet
	}
	checkpoint, _, err := reading.Log{Service: c.cfg.Records, Tenant: tenant}.File(ctx, tiles.CheckpointPath)
	if router.KindOf(err) == router.NotFound {
		return nil, nil
	}
	return checkpoint, err
}
