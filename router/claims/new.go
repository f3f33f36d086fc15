package claims

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *ClaimRequests {
	r := &ClaimRequests{c}
	calls.Add(c.Calls, c, shardHolder)
	calls.Add(c.Calls, c, shardClaim)
	calls.Add(c.Calls, c, shardBar)
	calls.Add(c.Calls, c, shardRefuse)
	calls.Add(c.Calls, c, shardNames)
	calls.Add(c.Calls, c, shardHolders)
	calls.Add(c.Calls, c, shardReplaced)
	return r
}
