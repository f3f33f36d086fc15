package calls

import (
	"context"
	"fmt"
)

func (m served[H, Q, A]) one(ctx context.Context, c *Caller, body []byte) ([]byte, error) {
	e, err := Open[Q](body)
	if err != nil {
		return nil, fmt.Errorf("read %s request: %w", m.name, err)
	}
	ctx, end := c.begin(ctx, m.name, e.Request, e.Trace)
	a, err := m.here(ctx, c, e.Group, e.Query)
	end(e.Group, err)
	if err != nil {
		return nil, err
	}
	return wireEnc.Marshal(a)
}

// Serve carries out a peer's request. EncodeFault turns its error into bytes for
// the peer.
func (c *Caller) Serve(ctx context.Context, name string, body []byte) ([]byte, error) {
	if name == methodGrouped {
		return c.serveGrouped(ctx, body)
	}
	h, ok := c.methods[name]
	if !ok {
		return nil, fmt.Errorf("router: unknown method %q", name)
	}
	return h.one(ctx, c, body)
}
