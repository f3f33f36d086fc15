package admission

import (
	"context"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
	"facet/router/secrets"
)

// ManageError returns the error for a status with which meta refuses a change of a
// tenant, and nil for success.
func ManageError(ctx context.Context, r *cluster.Cluster, what string, of id.Tenant, w metafsm.Write, s metafsm.Status) error {
	switch s {
	case metafsm.Done, metafsm.Replayed:
		return nil
	case metafsm.UnknownGallery, metafsm.StaleGeneration:
		return router.Errorf(router.NotFound, "", "there is no gallery with this id")
	case metafsm.UnknownApplication:
		return router.Errorf(router.NotFound, "", "there is no application with this id")
	case metafsm.Conflict:
		return keyReused()
	case metafsm.OtherSettings:
		return router.Errorf(router.OtherSettings, router.ReasonOtherSettings, "the settings were changed since this ETag was read: read them again, and repeat the change if it is still right")
	case metafsm.OpsFull:
		return operationsFull(changeWait(ctx, r, of, w))
	case metafsm.OtherKey:
		return secrets.ErrRetired
	case metafsm.OverChanges:
		return OverQuota(metaQuotas[s], changeWait(ctx, r, of, w))
	case metafsm.OverSubjects, metafsm.OverGalleries, metafsm.OverApplications:
		return OverQuota(metaQuotas[s], 0)
	default:
		return fmt.Errorf("%s: meta answered: %v", what, s)
	}
}

// metaQuotas maps a status of meta to the quota that the command would exceed.
var metaQuotas = map[metafsm.Status]metafsm.Quota{
	metafsm.OverSubjects: metafsm.QuotaSubjects, metafsm.OverGalleries: metafsm.QuotaGalleries,
	metafsm.OverApplications: metafsm.QuotaApplications, metafsm.OverAccessKeys: metafsm.QuotaAccessKeys,
	metafsm.OverChanges: metafsm.QuotaChanges,
}

// changeWait returns the Retry-After of a change that meta has no room to remember.
func changeWait(ctx context.Context, r *cluster.Cluster, of id.Tenant, w metafsm.Write) time.Duration {
	if err := r.SyncMeta(ctx); err != nil { // this node may not know what the leader has refused
		return ForgetRetry
	}
	return waitUntil(r.Groups.Meta().RoomAt(of, w.Keyed))
}

// TenantError returns the error for a status with which meta refuses a change of a tenant's
// state, and nil for success.
func TenantError(what string, s metafsm.Status) error {
	switch s {
	case metafsm.Done:
		return nil
	case metafsm.UnknownTenant:
		return router.Errorf(router.NotFound, "", "there is no such tenant")
	case metafsm.BeingDeleted:
		return router.Errorf(router.Duplicate, "", "the tenant is being deleted")
	case metafsm.Restoring:
		return router.Errorf(router.Duplicate, "", "a backup is being restored into the cluster; wait for its end")
	default:
		return fmt.Errorf("%s: meta answered %v", what, s)
	}
}
