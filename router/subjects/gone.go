package subjects

import (
	"context"

	"facet/internal/id"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
)

// SubjectGone confirms with the leader that a gallery has no such subject, and returns the commit
// index of the subject's group at that time. The error is InvalidRequest while the subject is
// there, and NotFound without the gallery.
func (r *SubjectRequests) SubjectGone(ctx context.Context, gallery id.Gallery, subject id.Subject) (router.Committed, error) {
	at := router.Committed{Group: subject.Shard()}
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return at, err
	}
	g, ok := r.cluster.Find(gallery)
	switch {
	case !ok:
		return at, router.Errorf(router.NotFound, "", "there is no gallery %s", gallery)
	case !g.Holds(at.Group):
		return at, router.Errorf(router.InvalidRequest, "", "subject %s is not of gallery %s", subject, gallery)
	}
	events, err := lookup.Events(ctx, r.cluster, g, subject)
	if err != nil {
		return at, err
	}
	if len(events) > 0 {
		return at, router.Errorf(router.InvalidRequest, "", "subject %s is still in gallery %s: erase it first", subject, gallery)
	}
	point, err := calls.CallLeader(ctx, r.cluster.Calls, cluster.GroupPoint, at.Group, struct{}{})
	at.Index = point.Index
	return at, err
}
