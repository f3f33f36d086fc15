package replicas

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/node/peer"
	"facet/node/transport"
	"facet/raftfsm"
)

const methodBeats = "node.beats"

// newBeats returns Beats that send the heartbeats of groups here to other nodes.
func newBeats(p Peers, t raftfsm.Timing) *raftfsm.Beats {
	return raftfsm.NewBeats(func(ctx context.Context, to id.Member, q, a any) error { return p.Ask(ctx, to, methodBeats, q, a) }, t)
}

// takes returns the handler of the heartbeats of groups that another node leads.
func takes(b *raftfsm.Beats) peer.Handler {
	return peer.Answers(func(ctx context.Context, q raftfsm.BeatsQuestion) (raftfsm.BeatsAnswer, error) {
		from, known := transport.Caller(ctx)
		if !known {
			return raftfsm.BeatsAnswer{}, errors.New("heartbeats of no node")
		}
		return b.Serve(from, q)
	})
}
