package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"facet/internal/id"
	"facet/node/transport"
	"facet/router/calls"
)

// Requests between nodes that the node itself answers; the rest is the router's.
const (
	methodOwn      = "node."
	methodFounders = methodOwn + "founders"
	methodStatus   = methodOwn + "status"
	methodReplica  = methodOwn + "replica"
	methodStanding = methodOwn + "standing"
	methodDemote   = methodOwn + "demote"
	methodSum      = methodOwn + "sum"
	methodDiverged = methodOwn + "diverged"
	methodRing     = methodOwn + "ring"
	methodRotate   = methodOwn + "rotate"
	methodCerts    = methodOwn + "certificates"
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
	switch method {
	case methodFounders:
		return json.Marshal(n.founders())
	case methodStatus:
		return json.Marshal(n.ownStatus())
	case methodReplica:
		return n.serveReplica(ctx, body)
	case methodSum:
		return n.serveSum(body)
	case methodDiverged:
		return n.serveDiverged(body)
	case methodDemote:
		return n.serveDemote(ctx, body)
	case methodStanding:
		return n.serveStanding(body)
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

// PeerError gives the bytes that calls.DecodeFault reads.
func (f peerFault) PeerError() []byte { return calls.EncodeFault(f.error) }
