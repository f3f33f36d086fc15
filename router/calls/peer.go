package calls

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
)

// CallMember carries out m on another node.
func CallMember[H, Q, A any](ctx context.Context, c *Caller, m Method[H, Q, A], group id.Shard, to id.Member, q Q) (A, error) {
	var a A
	body, err := wireEnc.Marshal(Envelope[Q]{group, q, requestlog.ID(ctx), trace.Parent(ctx)})
	if err != nil {
		return a, fmt.Errorf("encode %s request: %w", m.Name, err)
	}
	answer, err := c.peers.Call(ctx, to, m.Name, body)
	if err != nil {
		return a, err
	}
	if err := wireDec.Unmarshal(answer, &a); err != nil {
		return a, fmt.Errorf("read %s answer: %w", m.Name, err)
	}
	return a, nil
}
