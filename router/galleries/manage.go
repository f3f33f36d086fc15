package galleries

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/cluster"
)

// purgeWait is about how long DeleteTenant purges before it answers.
const purgeWait = 5 * time.Second

// UpdateGallery applies patch. The size can only grow. A gallery that gets more
// shards stays in use meanwhile.
func (r *GalleryRequests) UpdateGallery(ctx context.Context, tenant id.Tenant, w router.Write, gallery id.Gallery, patch router.GalleryPatch) (router.Gallery, error) {
	record, _ := r.cluster.Groups.Meta().Cluster()
	c := metafsm.UpdateGallery{
		Write: cluster.Stamped(w), Tenant: tenant, Gallery: gallery, Change: patch.Change,
		Shards: record.ShardCount(patch.To.Size), IfMatch: patch.IfMatch,
	}
	a, err := proposeNamed(ctx, r, metafsm.UpdateGalleryOp, c, deletion{tenant, patch.To.Name}, func(a metafsm.GalleryAnswer) metafsm.Status { return a.Status })
	if err != nil {
		return router.Gallery{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		if patch.Has("subjectTemplates") {
			err = cluster.WaitKnown(ctx)
		}
		return galleryOf(c.Changed(a.Gallery), 0), err // a retry gets the values of its request
	case metafsm.BeingDeleted:
		return router.Gallery{}, nameInUse()
	case metafsm.Exists:
		return router.Gallery{}, router.Errorf(router.Duplicate, "", "another gallery has this name: %s", a.Gallery.ID)
	case metafsm.SizeShrinks:
		return router.Gallery{}, router.Errorf(router.InvalidRequest, "", "the size of a gallery can only be increased")
	default:
		return router.Gallery{}, admission.ManageError(ctx, r.cluster, "update gallery", tenant, c.Write, a.Status)
	}
}

// UpdateApplication applies patch.
func (r *GalleryRequests) UpdateApplication(ctx context.Context, tenant id.Tenant, w router.Write, application id.Application, patch router.ApplicationPatch) (router.Application, error) {
	write := cluster.Stamped(w)
	c := metafsm.UpdateApplication{Write: write, Tenant: tenant, Application: application, Change: patch.Change, IfMatch: patch.IfMatch}
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.UpdateApplicationOp, c)
	if err != nil {
		return router.Application{}, err
	}
	if err := admission.ManageError(ctx, r.cluster, "update application", tenant, write, a.Status); err != nil {
		return router.Application{}, err
	}
	return r.applicationOf(c.Changed(a.Application)) // a retry gets the values of its request
}

// DeleteApplication removes an application. This node refuses its API key at once,
// every other node as soon as meta's log has reached it.
func (r *GalleryRequests) DeleteApplication(ctx context.Context, tenant id.Tenant, application id.Application) error {
	write := cluster.OwnWrite()
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.DeleteApplicationOp, metafsm.DeleteApplication{Write: write, Tenant: tenant, Application: application})
	if err != nil {
		return err
	}
	return admission.ManageError(ctx, r.cluster, "delete application", tenant, write, a.Status)
}

// DeleteGallery removes a gallery and its applications. When it returns, every
// shard refuses requests of nodes that do not know of the deletion yet. Sweep
// purges the entries later.
func (r *GalleryRequests) DeleteGallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) error {
	// A gallery under deletion counts as unknown.
	if _, err := cluster.ConfirmedLookup(ctx, r.cluster, func() (metafsm.Gallery, bool) { return r.cluster.Groups.Meta().Gallery(gallery) }); err != nil {
		if router.KindOf(err) == router.NotFound {
			err = admission.ManageError(ctx, r.cluster, "delete gallery", tenant, metafsm.Write{}, metafsm.UnknownGallery)
		}
		return err
	}
	write := cluster.OwnWrite()
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.DeleteGalleryOp, metafsm.DeleteGallery{Write: write, Tenant: tenant, Gallery: gallery})
	if err != nil {
		return err
	}
	if err := admission.ManageError(ctx, r.cluster, "delete gallery", tenant, write, a.Status); err != nil {
		return err
	}
	if a.Gallery.ID.IsZero() {
		return nil
	}
	_, err = r.fence(ctx, a.Gallery)
	return err
}

// DeleteTenant removes a tenant with its access keys, applications and galleries. The faces of
// the galleries are purged within purgeWait, or later by Sweep. left is the number of galleries
// with faces left; the tenant is gone when it is 0. A second call continues where the first one
// stopped. The errors are those of SetTenantState.
func (r *GalleryRequests) DeleteTenant(ctx context.Context, tenant id.Tenant) (left int, err error) {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.DeleteTenantOp, metafsm.DeleteTenant{Tenant: tenant})
	if err == nil {
		err = admission.TenantError("delete tenant", a.Status)
	}
	if err != nil {
		return 0, err
	}
	for end := time.Now().Add(purgeWait); ; {
		if err := r.cluster.SyncMeta(ctx); err != nil {
			return 0, err
		}
		left = 0
		for _, g := range r.cluster.Groups.Meta().Deleting() {
			if g.Tenant != tenant {
				continue
			}
			left++
			if err := r.sweep(ctx, g); err != nil {
				return left, err
			}
		}
		if left == 0 || time.Now().After(end) {
			return left, nil
		}
	}
}
