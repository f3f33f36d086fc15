package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"facet/internal/id"
	"facet/node/transport"
	"facet/router"
)

// Requests between nodes that the node itself answers; the rest is the router's.
const (
	methodOwn    = "node."
	methodStatus = methodOwn + "status"
	methodRing   = methodOwn + "ring"
	methodRotate = methodOwn + "rotate"
	methodCerts  = methodOwn + "certificates"
)

// peers reaches other nodes by their member ids (router.Peers).
type peers struct {
	self    id.Member
	client  *transport.Client
	resolve func(id.Member) (string, error)
}

// Self gives this node's member id.
func (p *peers) Self() id.Member { return p.self }

// Call has a peer carry out a request.
func (p *peers) Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error) {
	address, err := p.resolve(to)
	if err != nil {
		return nil, router.Unreachable(err)
	}
	node, err := to.Node()
	if err != nil {
		return nil, router.Unreachable(err)
	}
	answer, err := p.client.Call(ctx, transport.At(node, address), method, body)
	if err == nil {
		return answer, nil
	}
	if remote, ok := errors.AsType[*transport.RemoteError](err); ok {
		if remote.Payload != nil {
			return nil, router.DecodeFault(remote.Payload)
		}
		return nil, fmt.Errorf("peer %s: %w", to, err)
	}
	if errors.Is(err, transport.ErrTooLarge) {
		return nil, err
	}
	return nil, router.Unreachable(err)
}

// Ask has a member answer the question q of method. It reads the answer into a, unless
// that is nil. A nil q has no body.
func (p *peers) Ask(ctx context.Context, to id.Member, method string, q, a any) error {
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

// servePeer answers a request of another node.
func (n *Node) servePeer(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := n.mayAsk(ctx, method, body); err != nil {
		return nil, peerFault{err}
	}
	if !strings.HasPrefix(method, methodOwn) {
		answer, err := n.router.Serve(ctx, method, body)
		if err != nil {
			return nil, peerFault{err}
		}
		return answer, nil
	}
	if serve, ok := n.methods[method]; ok {
		return serve(ctx, body)
	}
	switch method {
	case methodStatus:
		return json.Marshal(n.ownStatus())
	case methodRing:
		return n.serveRing(ctx, body)
	case methodRotate:
		return n.serveRotate(ctx, body)
	case methodCerts:
		return n.serveCertificates(body)
	case methodPart, methodPropose, methodSums:
		answer, err := n.serveCopies(ctx, method, body)
		if err != nil {
			return nil, peerFault{err}
		}
		return answer, nil
	default:
		return nil, fmt.Errorf("node: unknown method %q", method)
	}
}

// peerFault is an error of the router on its way to a peer.
type peerFault struct{ error }

// PeerError gives the bytes that router.DecodeFault reads.
func (f peerFault) PeerError() []byte { return router.EncodeFault(f.error) }
