package routing

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// enrolment returns the gallery and the application of an access.
func (r *cluster) enrolment(access router.Access) (enrolment, metafsm.Application, error) {
	meta := r.groups.Meta()
	app, ok := meta.Application(access.Application)
	if !ok {
		return enrolment{}, app, router.Errorf(router.Forbidden, "", "Forbidden")
	}
	g, ok := r.gallery(access.Gallery)
	if !ok {
		return enrolment{}, app, router.Errorf(router.Forbidden, "", "Forbidden")
	}
	return g, app, nil
}

// enrolmentAt is enrolment for a subject or job on the shard at. The client sent an
// id that names this shard. enrolmentAt returns the error of missing when the
// gallery does not lie there. Before that, this node catches up with meta, because
// the gallery may have grown.
func (r *cluster) enrolmentAt(ctx context.Context, access router.Access, at id.Shard, missing func() error) (enrolment, metafsm.Application, error) {
	g, app, err := r.enrolment(access)
	if err != nil || g.holds(at) {
		return g, app, err
	}
	if record, _ := r.groups.Meta().Cluster(); at == 0 || int(at) > record.Shards {
		return g, app, missing()
	}
	if err := r.sync.Join(ctx); err != nil {
		return g, app, err
	}
	if g, app, err = r.enrolment(access); err == nil && !g.holds(at) {
		err = missing()
	}
	return g, app, err
}

func (r *cluster) gallery(gallery id.Gallery) (enrolment, bool) {
	meta := r.groups.Meta()
	g, ok := meta.Gallery(gallery)
	if !ok {
		return enrolment{}, false
	}
	return enrolment{g, shardsOf(meta, g)}, true
}

// Shards returns the numbers of all shards. Each may have work.
func (r *cluster) Shards() []id.Shard {
	record, _ := r.groups.Meta().Cluster()
	all := make([]id.Shard, 0, record.Shards)
	for n := range record.Shards {
		all = append(all, id.Shard(n+1))
	}
	return all
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
			return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownTag, "the gallery has no tag %q", name)
		}
		ids = append(ids, tag)
	}
	return ids, nil
}
