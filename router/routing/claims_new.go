package routing

import (
	"facet/router/calls"
)

// newClaims returns the requests of a node, and serves those of its peers.
func newClaims(c *cluster) *claims {
	r := &claims{c}
	calls.Add(c.calls, c, shardHolder)
	calls.Add(c.calls, c, shardClaim)
	calls.Add(c.calls, c, shardBar)
	calls.Add(c.calls, c, shardRefuse)
	calls.Add(c.calls, c, shardNames)
	calls.Add(c.calls, c, shardHolders)
	calls.Add(c.calls, c, shardReplaced)
	return r
}
