package tenants

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/secrets"
)

// EnsureSigner makes the key with which the cluster signs receipts, unless it has one or a node
// does not know the command.
func (r *TenantRequests) EnsureSigner(ctx context.Context) error {
	record, founded := r.cluster.Groups.Meta().Cluster()
	if !founded || len(record.Signer.WrappedSeed) > 0 {
		return nil
	}
	var seed [ed25519.SeedSize]byte
	cluster.MustRandom(seed[:])
	s := metafsm.Signer{WrappedSeed: r.cluster.Master.Wrap(seed[:], []byte(secrets.PurposeSigner))}
	copy(s.Public[:], ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)) //nolint:forcetypeassert // by its doc
	clear(seed[:])
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetSignerOp, metafsm.SetSigner{Signer: s}) // after OtherKey the next call tries again
	if err == nil && a.Status == metafsm.Done {
		r.cluster.Acted(router.Act{Log: id.ClusterLog, Operation: "make the signing key"})
	}
	return err
}

// Signer returns the key with which the cluster signs receipts.
func (r *TenantRequests) Signer() (id.Cluster, ed25519.PrivateKey, error) {
	record, _ := r.cluster.Groups.Meta().Cluster()
	if len(record.Signer.WrappedSeed) == 0 {
		return record.ID, nil, &router.Error{Kind: router.Unavailable, Message: "the cluster has no signing key yet: it makes one when all nodes are upgraded; try again", RetryAfter: calls.RetryLater}
	}
	seed, err := r.cluster.Master.Unwrap(record.Signer.WrappedSeed, []byte(secrets.PurposeSigner))
	if err != nil {
		return record.ID, nil, fmt.Errorf("open the signing key: %w", err)
	}
	return record.ID, ed25519.NewKeyFromSeed(seed), nil
}
