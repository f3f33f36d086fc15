package galleries

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/cluster"
)

// Tags returns the names of the gallery's tags in order of creation.
func (r *GalleryRequests) Tags(ctx context.Context, access router.Access) ([]string, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return nil, err
	}
	if _, _, err := r.cluster.Of(access); err != nil {
		return nil, err
	}
	names := []string{}
	for _, t := range r.cluster.Groups.Meta().Tags(access.Gallery) {
		names = append(names, t.Name)
	}
	return names, nil
}

// CreateTag creates a tag. The error is Duplicate when the gallery has a tag with
// this name.
func (r *GalleryRequests) CreateTag(ctx context.Context, access router.Access, name string) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.CreateTagOp, metafsm.CreateTag{Write: cluster.OwnWrite(), Gallery: access.Gallery, Name: name})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, name)
}

// RenameTag renames a tag. Events keep it. The error is NotFound for an unknown
// tag, and Duplicate when another tag has the new name.
func (r *GalleryRequests) RenameTag(ctx context.Context, access router.Access, from, to string) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.RenameTagOp, metafsm.RenameTag{Write: cluster.OwnWrite(), Gallery: access.Gallery, From: from, To: to})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, to)
}

// DeleteTag removes a tag. Events stay unchanged. The error is NotFound for an
// unknown tag.
func (r *GalleryRequests) DeleteTag(ctx context.Context, access router.Access, name string) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.DeleteTagOp, metafsm.DeleteTag{Write: cluster.OwnWrite(), Gallery: access.Gallery, Name: name})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, name)
}

// tagError returns the error for a status with which meta refuses a change of tags,
// and nil for success.
func (r *GalleryRequests) tagError(ctx context.Context, of id.Tenant, s metafsm.Status, name string) error {
	switch s {
	case metafsm.Done, metafsm.Replayed:
		return nil
	case metafsm.Exists:
		return router.Errorf(router.Duplicate, "", "the gallery has a tag %q already", name)
	case metafsm.TagLimit:
		return router.Errorf(router.InvalidRequest, router.ReasonTagLimit, "the gallery has %d tags, the most there can be", metafsm.TagsMax)
	case metafsm.UnknownTag:
		return router.Errorf(router.NotFound, router.ReasonUnknownTag, "the gallery has no such tag")
	case metafsm.UnknownGallery:
		return router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
	default:
		return admission.ManageError(ctx, r.cluster, "change tags", of, metafsm.Write{}, s)
	}
}
