package replicas

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/node/peer"
	"facet/node/transport"
	"facet/raftfsm"
)

const methodProofs = "node.proofs"

// newProofs returns Proofs that send the proofs of groups here to other nodes.
func newProofs(p Peers) *raftfsm.Proofs {
	return raftfsm.NewProofs(func(ctx context.Context, to id.Member, q, a any) error {
		return p.Ask(ctx, to, methodProofs, q, a)
	})
}

// proves returns the handler of the proofs of another node's groups.
func proves(p *raftfsm.Proofs) peer.Handler {
	return peer.Answers(func(ctx context.Context, q raftfsm.ProofsQuestion) (raftfsm.ProofsAnswer, error) {
		from, known := transport.Caller(ctx)
		if !known {
			return raftfsm.ProofsAnswer{}, errors.New("proofs of no node")
		}
		return p.Serve(from, q)
	})
}
