package routing

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// newClaims returns the requests of a node, and serves those of its peers.
func newClaims(c *cluster.Cluster) *claims {
	r := &claims{c}
	calls.Add(c.Calls, c, shardHolder)
	calls.Add(c.Calls, c, shardClaim)
	calls.Add(c.Calls, c, shardBar)
	calls.Add(c.Calls, c, shardRefuse)
	calls.Add(c.Calls, c, shardNames)
	calls.Add(c.Calls, c, shardHolders)
	calls.Add(c.Calls, c, shardReplaced)
	return r
}
