package node

import (
	"context"
	"fmt"
	"strings"

	"facet/node/holder"
	"facet/node/peer"
	"facet/router"
)

// methodOwn is the prefix of the requests that the node's parts answer. The router answers
// all other requests.
const methodOwn = "node."

// servePeer answers a request of another node.
func (n *Node) servePeer(ctx context.Context, method string, body []byte) ([]byte, error) {
	if err := n.access.mayAsk(ctx, method, body); err != nil {
		return nil, peer.Fault{Err: err}
	}
	if err := n.holder.Err(); err != nil && method != holder.MethodClaim {
		return nil, peer.Fault{Err: router.Errorf(router.Unavailable, "", "%v", err)}
	}
	if !strings.HasPrefix(method, methodOwn) {
		answer, err := n.router.Serve(ctx, method, body)
		if err != nil {
			return nil, peer.Fault{Err: err}
		}
		return answer, nil
	}
	serve, known := n.methods[method]
	if !known {
		return nil, fmt.Errorf("node: unknown method %q", method)
	}
	return serve(ctx, body)
}
