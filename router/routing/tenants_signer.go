package routing

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
)

// EnsureSigner makes the key with which the cluster signs receipts, unless it has one or a node
// does not know the command.
func (r *accessRequests) EnsureSigner(ctx context.Context) error {
	record, founded := r.cluster.groups.Meta().Cluster()
	if !founded || len(record.Signer.WrappedSeed) > 0 {
		return nil
	}
	var seed [ed25519.SeedSize]byte
	mustRandom(seed[:])
	s := metafsm.Signer{WrappedSeed: r.cluster.master.Wrap(seed[:], []byte(purposeSigner))}
	copy(s.Public[:], ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	clear(seed[:])
	a, err := proposeMeta(ctx, r.cluster, metafsm.SetSignerOp, metafsm.SetSigner{Signer: s}) // after OtherKey the next call tries again
	if err == nil && a.Status == metafsm.Done {
		r.cluster.acted(router.Act{Log: id.ClusterLog, Operation: "make the signing key"})
	}
	return err
}

// Signer returns the key with which the cluster signs receipts.
func (r *accessRequests) Signer() (id.Cluster, ed25519.PrivateKey, error) {
	record, _ := r.cluster.groups.Meta().Cluster()
	if len(record.Signer.WrappedSeed) == 0 {
		return record.ID, nil, &router.Error{Kind: router.Unavailable, Message: "the cluster has no signing key yet: it makes one when all nodes are upgraded; try again", RetryAfter: calls.RetryLater}
	}
	seed, err := r.cluster.master.Unwrap(record.Signer.WrappedSeed, []byte(purposeSigner))
	if err != nil {
		return record.ID, nil, fmt.Errorf("open the signing key: %w", err)
	}
	return record.ID, ed25519.NewKeyFromSeed(seed), nil
}
