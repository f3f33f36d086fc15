// Package peer reaches the other nodes of a cluster by the names of their members.
package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/node/transport"
	"facet/router/calls"
)

// AnswerTimeout is the longest wait for the answer to a short question. A question over a new
// connection takes three round trips, and a leader that first asks its quorum takes one more.
// So it leaves time for round trips of half a second.
const AnswerTimeout = 2500 * time.Millisecond

// Peers reaches other nodes by their member ids (router.Peers).
type Peers struct {
	self    id.Member
	client  *transport.Client
	resolve func(id.Member) (string, error)
}

// New returns the peers of the member self; resolve returns the address of a member.
func New(self id.Member, client *transport.Client, resolve func(id.Member) (string, error)) *Peers {
	return &Peers{self, client, resolve}
}

// Self returns this node's member id.
func (p *Peers) Self() id.Member { return p.self }

// Call has a peer carry out a request.
func (p *Peers) Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error) {
	address, err := p.resolve(to)
	if err != nil {
		return nil, calls.Unreachable(err)
	}
	node, err := to.Node()
	if err != nil {
		return nil, calls.Unreachable(err)
	}
	answer, err := p.client.Call(ctx, transport.At(node, address), method, body)
	if err == nil {
		return answer, nil
	}
	if remote, ok := errors.AsType[*transport.RemoteError](err); ok {
		if remote.Payload != nil {
			return nil, calls.DecodeFault(remote.Payload)
		}
		return nil, fmt.Errorf("peer %s: %w", to, err)
	}
	if errors.Is(err, transport.ErrTooLarge) {
		return nil, err
	}
	return nil, calls.Unreachable(err)
}

// Ask sends the question q as JSON and reads the answer into a. A nil q has no body, a nil
// a ignores the answer.
func (p *Peers) Ask(ctx context.Context, to id.Member, method string, q, a any) error {
	var body []byte
	if q != nil {
		var err error
		if body, err = json.Marshal(q); err != nil {
			return fmt.Errorf("encode a question: %w", err)
		}
	}
	answer, err := p.Call(ctx, to, method, body)
	if err != nil || a == nil {
		return err
	}
	if err := json.Unmarshal(answer, a); err != nil {
		return fmt.Errorf("read the answer of %s: %w", to, err)
	}
	return nil
}

// Handler answers a request of another node.
type Handler = func(ctx context.Context, body []byte) ([]byte, error)

// Answers returns a Handler that reads a Q from JSON and answers with what do returns, as
// JSON.
func Answers[Q, A any](do func(context.Context, Q) (A, error)) Handler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("read a question: %w", err)
		}
		a, err := do(ctx, q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(a)
	}
}

// Obeys returns a Handler that reads a Q from JSON and answers with no body.
func Obeys[Q any](do func(context.Context, Q) error) Handler {
	return func(ctx context.Context, body []byte) ([]byte, error) {
		var q Q
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, fmt.Errorf("read an order: %w", err)
		}
		return nil, do(ctx, q)
	}
}

// Faults returns do with its errors as Faults, so that the peer receives their kinds.
func Faults[Q, A any](do func(context.Context, Q) (A, error)) func(context.Context, Q) (A, error) {
	return func(ctx context.Context, q Q) (A, error) {
		a, err := do(ctx, q)
		if err != nil {
			err = Fault{err}
		}
		return a, err
	}
}

// Fault is an error of the router that keeps its kind on the way to a peer.
type Fault struct{ Err error }

// Error returns the error's text.
func (f Fault) Error() string { return f.Err.Error() }

// Unwrap returns the error.
func (f Fault) Unwrap() error { return f.Err }

// PeerError returns the bytes that calls.DecodeFault reads.
func (f Fault) PeerError() []byte { return calls.EncodeFault(f.Err) }
