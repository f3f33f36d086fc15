package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

const (
	// purgeBatch is the most entries of a deleted gallery that one command drops.
	purgeBatch = 1000
	// nameWait is how long a request waits for the name of a deleted gallery: about
	// as long as a client waits. namePause is the pause between two looks.
	nameWait  = 20 * time.Second
	namePause = 10 * time.Millisecond
	// purgeWait is about how long DeleteTenant purges before it answers.
	purgeWait = 5 * time.Second
)

// UpdateGallery applies patch. The size can only grow. A gallery that gets more
// shards stays in use meanwhile.
func (r *galleryRequests) UpdateGallery(ctx context.Context, tenant id.Tenant, w Write, gallery id.Gallery, patch GalleryPatch) (Gallery, error) {
	record, _ := r.cluster.groups.Meta().Cluster()
	c := metafsm.UpdateGallery{
		Write: stamped(w), Tenant: tenant, Gallery: gallery, Name: patch.Name, Description: patch.Description,
		SubjectTemplates: patch.SubjectTemplates, PhotoLink: patch.PhotoLink,
		Purpose: patch.Purpose, LegalGround: patch.LegalGround, Recipients: patch.Recipients, IfMatch: patch.IfMatch,
	}
	if patch.Size != nil {
		size := uint32(*patch.Size)
		c.Size, c.Shards = &size, record.ShardCount(size)
	}
	if patch.RetentionDays != nil {
		days := uint32(*patch.RetentionDays)
		c.RetentionDays = &days
	}
	of := deletion{tenant: tenant}
	if patch.Name != nil {
		of.name = *patch.Name
	}
	a, err := proposeNamed(ctx, r, metafsm.UpdateGalleryOp, c, of, func(a metafsm.GalleryAnswer) metafsm.Status { return a.Status })
	if err != nil {
		return Gallery{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		if patch.SubjectTemplates != nil {
			err = waitKnown(ctx)
		}
		return galleryOf(c.Changed(a.Gallery), 0), err // a retry gets the values of its request
	case metafsm.BeingDeleted:
		return Gallery{}, nameInUse()
	case metafsm.Exists:
		return Gallery{}, Errorf(Duplicate, "", "another gallery has this name: %s", a.Gallery.ID)
	case metafsm.SizeShrinks:
		return Gallery{}, Errorf(InvalidRequest, "", "the size of a gallery can only be increased")
	default:
		return Gallery{}, manageError(ctx, r.cluster, "update gallery", tenant, c.Write, a.Status)
	}
}

// UpdateApplication applies patch.
func (r *galleryRequests) UpdateApplication(ctx context.Context, tenant id.Tenant, w Write, application id.Application, patch ApplicationPatch) (Application, error) {
	write := stamped(w)
	c := metafsm.UpdateApplication{
		Write: write, Tenant: tenant, Application: application,
		Name: patch.Name, Description: patch.Description, MinimumQuality: patch.MinimumQuality,
		VerifyThreshold: patch.VerifyThreshold, GuardThreshold: patch.GuardThreshold, Guard: patch.Guard,
		ReviewThreshold: patch.ReviewThreshold, ReviewVerdicts: patch.ReviewVerdicts, ReviewDays: patch.ReviewDays,
		SearchThresholdMin: patch.SearchThresholdMin, SearchLimitMax: patch.SearchLimitMax, IfMatch: patch.IfMatch,
	}
	if patch.MultipleFaces != nil {
		rule := metafsm.FaceRule(*patch.MultipleFaces)
		c.MultipleFaces = &rule
	}
	a, err := proposeMeta(ctx, r.cluster, metafsm.UpdateApplicationOp, c)
	if err != nil {
		return Application{}, err
	}
	if err := manageError(ctx, r.cluster, "update application", tenant, write, a.Status); err != nil {
		return Application{}, err
	}
	return r.applicationOf(c.Changed(a.Application)) // a retry gets the values of its request
}

// DeleteApplication removes an application. This node refuses its API key at once,
// every other node as soon as meta's log has reached it.
func (r *galleryRequests) DeleteApplication(ctx context.Context, tenant id.Tenant, application id.Application) error {
	write := ownWrite()
	a, err := proposeMeta(ctx, r.cluster, metafsm.DeleteApplicationOp, metafsm.DeleteApplication{Write: write, Tenant: tenant, Application: application})
	if err != nil {
		return err
	}
	return manageError(ctx, r.cluster, "delete application", tenant, write, a.Status)
}

// DeleteGallery removes a gallery and its applications. When it returns, every
// shard refuses requests of nodes that do not know of the deletion yet. Sweep
// purges the entries later.
func (r *galleryRequests) DeleteGallery(ctx context.Context, tenant id.Tenant, gallery id.Gallery) error {
	// A gallery under deletion counts as unknown.
	if _, err := confirmedLookup(ctx, r.cluster, func() (metafsm.Gallery, bool) { return r.cluster.groups.Meta().Gallery(gallery) }); err != nil {
		if KindOf(err) == NotFound {
			err = manageError(ctx, r.cluster, "delete gallery", tenant, metafsm.Write{}, metafsm.UnknownGallery)
		}
		return err
	}
	write := ownWrite()
	a, err := proposeMeta(ctx, r.cluster, metafsm.DeleteGalleryOp, metafsm.DeleteGallery{Write: write, Tenant: tenant, Gallery: gallery})
	if err != nil {
		return err
	}
	if err := manageError(ctx, r.cluster, "delete gallery", tenant, write, a.Status); err != nil {
		return err
	}
	if a.Gallery.ID.IsZero() {
		return nil
	}
	_, err = r.fence(ctx, a.Gallery)
	return err
}

// fence makes all shards of a deleted gallery refuse its former generation. left is
// the number of entries still to be purged.
func (r *galleryRequests) fence(ctx context.Context, g metafsm.Gallery) (left uint64, err error) {
	answers, err := calls.Scatter(ctx, r.cluster.calls, shardFence, shardsOf(r.cluster.groups.Meta(), g), shardfsm.Fence{Gallery: g.ID, Generation: g.Generation})
	for _, a := range answers {
		left += a.Left
	}
	return left, err
}

func shardsOf(meta *metafsm.Machine, g metafsm.Gallery) []id.Shard {
	record, _ := meta.Cluster()
	return metafsm.ShardsOf(g.ID, g.Shards, record.Shards)
}

// deletion names the gallery under deletion that keeps a name from another one.
type deletion struct {
	tenant id.Tenant
	name   string
}

// proposeNamed proposes a command that gives a gallery a name. A gallery under deletion
// keeps its name until its entries are purged, although its client got the answer. So
// proposeNamed purges them, as Sweep does, and proposes again, for up to nameWait.
func proposeNamed[C, A any](ctx context.Context, r *galleryRequests, op command.Op[C, A], c C, of deletion, status func(A) metafsm.Status) (A, error) {
	for end := time.Now().Add(nameWait); ; {
		a, err := proposeMeta(ctx, r.cluster, op, c)
		if err != nil || status(a) != metafsm.BeingDeleted || time.Now().After(end) {
			return a, err
		}
		for _, g := range r.cluster.groups.Meta().Deleting() {
			if g.Tenant != of.tenant || g.Name != of.name {
				continue
			}
			if err := r.sweep(ctx, g); err != nil {
				return a, err
			}
		}
		select {
		case <-time.After(namePause):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
}

// nameInUse returns the answer when a deletion takes longer than nameWait.
func nameInUse() error {
	return &Error{Kind: Busy, Message: "a gallery with this name is being deleted; try again", RetryAfter: calls.RetryLater}
}

// DeleteTenant removes a tenant with its access keys, applications and galleries. The faces of
// the galleries are purged within purgeWait, or later by Sweep. left is the number of galleries
// with faces left; the tenant is gone when it is 0. A second call continues where the first one
// stopped. The errors are those of SetTenantState.
func (r *galleryRequests) DeleteTenant(ctx context.Context, tenant id.Tenant) (left int, err error) {
	a, err := proposeMeta(ctx, r.cluster, metafsm.DeleteTenantOp, metafsm.DeleteTenant{Tenant: tenant})
	if err == nil {
		err = tenantError("delete tenant", a.Status)
	}
	if err != nil {
		return 0, err
	}
	for end := time.Now().Add(purgeWait); ; {
		if err := r.cluster.sync.Join(ctx); err != nil {
			return 0, err
		}
		left = 0
		for _, g := range r.cluster.groups.Meta().Deleting() {
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

// Sweep continues the deletion of galleries. Every step may be repeated, so it can
// continue where another node stopped. One call does a bounded part of the work.
func (r *galleryRequests) Sweep(ctx context.Context) error {
	var failed []error
	for _, g := range r.cluster.groups.Meta().Deleting() {
		if err := r.sweep(ctx, g); err != nil {
			failed = append(failed, fmt.Errorf("purge gallery %s: %w", g.ID, err))
		}
	}
	return errors.Join(failed...)
}

func (r *galleryRequests) sweep(ctx context.Context, g metafsm.Gallery) error {
	left, err := r.fence(ctx, g)
	if err != nil {
		return err
	}
	if left > 0 {
		_, err := calls.Scatter(ctx, r.cluster.calls, shardPurge, shardsOf(r.cluster.groups.Meta(), g), shardfsm.Purge{Gallery: g.ID, Generation: g.Generation, Max: purgeBatch})
		return err
	}
	_, err = proposeMeta(ctx, r.cluster, metafsm.ForgetGalleryOp, metafsm.ForgetGallery{Gallery: g.ID, Generation: g.Generation})
	return err
}

// manageError returns the error for a status with which meta refuses a change of a
// tenant, and nil for success.
func manageError(ctx context.Context, r *cluster, what string, of id.Tenant, w metafsm.Write, s metafsm.Status) error {
	switch s {
	case metafsm.Done, metafsm.Replayed:
		return nil
	case metafsm.UnknownGallery, metafsm.StaleGeneration:
		return Errorf(NotFound, "", "there is no gallery with this id")
	case metafsm.UnknownApplication:
		return Errorf(NotFound, "", "there is no application with this id")
	case metafsm.Conflict:
		return keyReused()
	case metafsm.OtherSettings:
		return Errorf(OtherSettings, ReasonOtherSettings, "the settings were changed since this ETag was read: read them again, and repeat the change if it is still right")
	case metafsm.OpsFull:
		return operationsFull(changeWait(ctx, r, of, w))
	case metafsm.OtherKey:
		return errRetired
	case metafsm.OverChanges:
		return overQuota(metaQuotas[s], changeWait(ctx, r, of, w))
	case metafsm.OverSubjects, metafsm.OverGalleries, metafsm.OverApplications:
		return overQuota(metaQuotas[s], 0)
	default:
		return fmt.Errorf("%s: meta answered: %v", what, s)
	}
}

// ownWrite returns a Write with a new operation. A retry within this call finds the
// operation's outcome. A second request of the client is a second operation.
func ownWrite() metafsm.Write {
	var w Write
	mustRandom(w.Operation[:])
	return stamped(w)
}

var shardFence = shardCommand("shard.fence", shardfsm.FenceOp, nil)

var shardPurge = shardCommand("shard.purge", shardfsm.PurgeOp, nil)
