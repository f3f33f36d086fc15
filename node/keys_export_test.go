package node

import (
	"context"
	"time"

	"facet/node/wire"
)

// WarnOfExpiry logs which certificates end soon after now.
func (n *Node) WarnOfExpiry(ctx context.Context, now time.Time) bool {
	return n.keys.WarnOfExpiry(ctx, now)
}

// Rotate replaces a key that all nodes share.
func (n *Node) Rotate(ctx context.Context, o wire.RingOrder) (wire.RingAnswer, error) {
	return n.keys.Rotate(ctx, o)
}

// Certificates has a node request new certificates, or gives them to it.
func (n *Node) Certificates(ctx context.Context, o wire.CertificateOrder) (wire.CertificateAnswer, error) {
	return n.keys.Certificates(ctx, o)
}
