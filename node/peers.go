package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"facet/node/peer"
)

// Requests between nodes that the node itself answers; the rest is the router's.
const (
	methodOwn    = "node."
	methodStatus = methodOwn + "status"
)

// servePeer answers a request of another node.
func (n *Node) servePeer(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := n.mayAsk(ctx, method, body); err != nil {
		return nil, peer.Fault{Err: err}
	}
	if !strings.HasPrefix(method, methodOwn) {
		answer, err := n.router.Serve(ctx, method, body)
		if err != nil {
			return nil, peer.Fault{Err: err}
		}
		return answer, nil
	}
	if serve, ok := n.methods[method]; ok {
		return serve(ctx, body)
	}
	switch method {
	case methodStatus:
		return json.Marshal(n.ownStatus())
	case methodPart, methodPropose, methodSums:
		answer, err := n.serveCopies(ctx, method, body)
		if err != nil {
			return nil, peer.Fault{Err: err}
		}
		return answer, nil
	default:
		return nil, fmt.Errorf("node: unknown method %q", method)
	}
}
