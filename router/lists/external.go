package lists

import (
	"context"
	"slices"

	"facet/router"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/shard"
)

// SubjectsWith returns the list of the active events of the subject that has an external id. It
// is empty if none has.
func (r *ListRequests) SubjectsWith(ctx context.Context, access router.Access, externalID string) (router.Listing, error) {
	g, key, n, err := r.claims.ByExternal(access, externalID)
	if err != nil {
		return router.Listing{}, err
	}
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (router.Listing, error) {
		subject, a, err := r.claims.Find(ctx, claims.Named{Gallery: g, Name: n.Name})
		if router.KindOf(err) == router.NotFound {
			return router.Listing{}, nil
		}
		if err != nil {
			return router.Listing{}, err
		}
		note, err := g.OpenNote(key, subject, a.Events[0])
		if err != nil {
			return router.Listing{}, err
		}
		out := router.Listing{Total: len(a.Entries)}
		for _, e := range a.Entries {
			entry := entryOf(e, note)
			if i := slices.IndexFunc(a.Events, func(of shard.Active) bool { return of.Event == e.Event }); i >= 0 {
				entry.Expires = cluster.ExpiresAt(g.Kept(), a.Events[i].Time, a.Events[i].Expires)
			}
			out.Entries = append(out.Entries, entry)
		}
		return out, nil
	})
}
