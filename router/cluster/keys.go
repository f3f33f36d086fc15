package cluster

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/secrets"
	"facet/shard/seal"
)

// KeysMax is the most unwrapped data keys in the cache.
const KeysMax = 10_000

// DataKey returns the key that seals the faces of g.
func (r *Cluster) DataKey(g metafsm.Gallery) (*seal.Key, error) {
	r.keys.mu.Lock()
	defer r.keys.mu.Unlock()
	name := keyName{g.ID, g.Generation}
	if k, ok := r.keys.key[name]; ok {
		return k, nil
	}
	raw, err := r.Master.Unwrap(g.WrappedKey, []byte(secrets.PurposeData+g.ID.String()))
	if err != nil {
		return nil, fmt.Errorf("unwrap the data key of gallery %s: %w", g.ID, err)
	}
	k, err := seal.NewKey(raw)
	if err != nil {
		return nil, err
	}
	if r.keys.key == nil || len(r.keys.key) >= KeysMax {
		r.keys.key = map[keyName]*seal.Key{}
	}
	r.keys.key[name] = k
	return k, nil
}

// KeyOf returns a gallery's data key on a node that answers for a shard. This
// node's replica of meta may not know the gallery yet.
func KeyOf(ctx context.Context, r *Cluster, gallery id.Gallery) (*seal.Key, error) {
	look := func() (metafsm.Gallery, bool) { return r.Groups.Meta().Gallery(gallery) }
	g, ok := look() // unconfirmed: the shard's fence refuses a deleted gallery
	if !ok {
		var err error
		if g, err = ConfirmedLookup(ctx, r, look); err != nil {
			return nil, err
		}
	}
	return r.DataKey(g)
}
