package cluster

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Of returns the gallery and the application of an access.
func (r *Cluster) Of(access router.Access) (Gallery, metafsm.Application, error) {
	meta := r.Groups.Meta()
	app, ok := meta.Application(access.Application)
	if !ok {
		return Gallery{}, app, router.Errorf(router.Forbidden, "", "Forbidden")
	}
	g, ok := r.Find(access.Gallery)
	if !ok {
		return Gallery{}, app, router.Errorf(router.Forbidden, "", "Forbidden")
	}
	return g, app, nil
}

// At is Of for a subject or job on the shard at. The client sent an id that names this
// shard. At returns the error of missing when the gallery is not on it. Before that, this
// node catches up with meta, because the gallery may have grown.
func (r *Cluster) At(ctx context.Context, access router.Access, at id.Shard, missing func() error) (Gallery, metafsm.Application, error) {
	g, app, err := r.Of(access)
	if err != nil || g.Holds(at) {
		return g, app, err
	}
	if record, _ := r.Groups.Meta().Cluster(); at == 0 || int(at) > record.Shards {
		return g, app, missing()
	}
	if err := r.sync.Join(ctx); err != nil {
		return g, app, err
	}
	if g, app, err = r.Of(access); err == nil && !g.Holds(at) {
		err = missing()
	}
	return g, app, err
}

// Find returns a gallery as this node's replica of meta has it.
func (r *Cluster) Find(gallery id.Gallery) (Gallery, bool) {
	meta := r.Groups.Meta()
	g, ok := meta.Gallery(gallery)
	if !ok {
		return Gallery{}, false
	}
	return Gallery{g, ShardsOf(meta, g)}, true
}

// Shards returns the numbers of all shards. Each may have work.
func (r *Cluster) Shards() []id.Shard {
	record, _ := r.Groups.Meta().Cluster()
	all := make([]id.Shard, 0, record.Shards)
	for n := range record.Shards {
		all = append(all, id.Shard(n+1))
	}
	return all
}

// TagIdentities returns the identities of the gallery's tags with these names. This node
// first catches up with meta, so that it does not find a tag that another node has
// just deleted.
func TagIdentities(ctx context.Context, r *Cluster, g Gallery, names []string) ([]uint32, error) {
	if len(names) == 0 {
		return nil, nil
	}
	if err := r.sync.Join(ctx); err != nil {
		return nil, err
	}
	ids := make([]uint32, 0, len(names))
	for _, name := range names {
		tag, ok := r.Groups.Meta().TagIdentity(g.ID, name)
		if !ok {
			return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownTag, "the gallery has no tag %q", name)
		}
		ids = append(ids, tag)
	}
	return ids, nil
}
