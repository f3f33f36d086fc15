package router

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

// Tags returns the names of the gallery's tags in order of creation.
func (r *galleryRequests) Tags(ctx context.Context, access Access) ([]string, error) {
	if err := r.cluster.sync.Join(ctx); err != nil {
		return nil, err
	}
	if _, _, err := r.cluster.enrolment(access); err != nil {
		return nil, err
	}
	names := []string{}
	for _, t := range r.cluster.groups.Meta().Tags(access.Gallery) {
		names = append(names, t.Name)
	}
	return names, nil
}

// CreateTag creates a tag. The error is Duplicate when the gallery has a tag with
// this name.
func (r *galleryRequests) CreateTag(ctx context.Context, access Access, name string) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.CreateTagOp, metafsm.CreateTag{Write: ownWrite(), Gallery: access.Gallery, Name: name})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, name)
}

// RenameTag renames a tag. Events keep it. The error is NotFound for an unknown
// tag, and Duplicate when another tag has the new name.
func (r *galleryRequests) RenameTag(ctx context.Context, access Access, from, to string) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.RenameTagOp, metafsm.RenameTag{Write: ownWrite(), Gallery: access.Gallery, From: from, To: to})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, to)
}

// DeleteTag removes a tag. Events stay unchanged. The error is NotFound for an
// unknown tag.
func (r *galleryRequests) DeleteTag(ctx context.Context, access Access, name string) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.DeleteTagOp, metafsm.DeleteTag{Write: ownWrite(), Gallery: access.Gallery, Name: name})
	if err != nil {
		return err
	}
	return r.tagError(ctx, access.Tenant, a.Status, name)
}

// tagError returns the error for a status with which meta refuses a change of tags,
// and nil for success.
func (r *galleryRequests) tagError(ctx context.Context, of id.Tenant, s metafsm.Status, name string) error {
	switch s {
	case metafsm.Done, metafsm.Replayed:
		return nil
	case metafsm.Exists:
		return Errorf(Duplicate, "", "the gallery has a tag %q already", name)
	case metafsm.TagLimit:
		return Errorf(InvalidRequest, ReasonTagLimit, "the gallery has %d tags, the most there can be", metafsm.TagsMax)
	case metafsm.UnknownTag:
		return Errorf(NotFound, ReasonUnknownTag, "the gallery has no such tag")
	case metafsm.UnknownGallery:
		return Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
	default:
		return manageError(ctx, r.cluster, "change tags", of, metafsm.Write{}, s)
	}
}

// tags returns the identities of the gallery's tags with these names. This node
// first catches up with meta, so that it does not find a tag that another node has
// just deleted.
func tagIdentities(ctx context.Context, r *cluster, g enrolment, names []string) ([]uint32, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if err := r.sync.Join(ctx); err != nil {
		return nil, err
	}
	ids := make([]uint32, 0, len(names))
	for _, name := range names {
		tag, ok := r.groups.Meta().TagIdentity(g.ID, name)
		if !ok {
			return nil, Errorf(InvalidRequest, ReasonUnknownTag, "the gallery has no tag %q", name)
		}
		ids = append(ids, tag)
	}
	return ids, nil
}
