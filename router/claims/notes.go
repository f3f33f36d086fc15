package claims

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard"
	"facet/shard/seal"
)

// NameOf returns the name of an external id in a gallery; the empty id has none.
func NameOf(g cluster.Gallery, key *seal.Key, externalID string) Named {
	if externalID == "" {
		return Named{Gallery: g}
	}
	return Named{g, shard.NameExternal(key, g.ID, g.Generation, externalID)}
}

// ByExternal returns the gallery of an access, its key, and the name of an external id in it.
func (r *ClaimRequests) ByExternal(access router.Access, externalID string) (cluster.Gallery, *seal.Key, Named, error) {
	g, _, err := r.Of(access)
	if err != nil {
		return g, nil, Named{}, err
	}
	key, err := r.DataKey(g.Gallery)
	if err != nil {
		return g, nil, Named{}, err
	}
	return g, key, NameOf(g, key, externalID), nil
}

// SubjectWith returns the subject that has an external id. The error is NotFound if none has.
func (r *ClaimRequests) SubjectWith(ctx context.Context, access router.Access, externalID string) (id.Subject, error) {
	g, _, n, err := r.ByExternal(access, externalID)
	if err != nil {
		return id.Subject{}, err
	}
	return cluster.WithFreshShards(ctx, r.Cluster, g, func(g cluster.Gallery) (id.Subject, error) {
		subject, _, err := r.Find(ctx, Named{g, n.Name})
		return subject, err
	})
}

// SubjectToRename returns the subject that has an external id, for a write that gives it another
// one, or none. For a retry it returns the subject of the first try, whoever has the id now.
func (r *ClaimRequests) SubjectToRename(ctx context.Context, access router.Access, externalID string, w router.Write) (id.Subject, error) {
	g, _, n, err := r.ByExternal(access, externalID)
	if err != nil {
		return id.Subject{}, err
	}
	return cluster.WithFreshShards(ctx, r.Cluster, g, func(g cluster.Gallery) (id.Subject, error) {
		first, err := calls.Scatter(ctx, r.Calls, shardReplaced, g.ShardIDs, replacedQuery{g.ID, g.Generation, g.Epoch, w.Operation})
		if err != nil {
			return id.Subject{}, err
		}
		for _, subject := range first {
			if !subject.IsZero() {
				return subject, nil
			}
		}
		subject, _, err := r.Find(ctx, Named{g, n.Name})
		return subject, err
	})
}

// replacedQuery asks a shard for the subject whose face an operation replaced.
type replacedQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Epoch      uint32       `cbor:"3,keyasint"` // as in searches.SearchQuery
	Operation  id.Operation `cbor:"4,keyasint"`
}

// shardReplaced returns the zero subject for an operation that the shard does not remember.
var shardReplaced = cluster.MachineRead("shard.replaced", func(m *shardfsm.Machine, q replacedQuery) (id.Subject, error) {
	if err := m.Shard().CheckEpoch(q.Gallery, q.Generation, q.Epoch); err != nil {
		return id.Subject{}, err
	}
	subject, _ := m.Replaced(q.Gallery, q.Operation)
	return subject, nil
})
