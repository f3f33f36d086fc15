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
// begins can name the one that it follows.

// note adds the present checkpoint of a tenant's audit log to its record.
func (m metaCopier) note(t *metafsm.Tenant) error {
	checkpoint, err := m.checkpoint(t.ID)
	switch {
	case err != nil:
		return fmt.Errorf("read the checkpoint of the audit log of tenant %s: %w", t.ID, err)
	case len(checkpoint) > metafsm.FormerMax:
		return fmt.Errorf("the checkpoint of the audit log of tenant %s has %d bytes", t.ID, len(checkpoint))
	case checkpoint != nil:
		t.Audit.Former = checkpoint
	}
	return nil
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
