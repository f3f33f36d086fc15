package claims

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *ClaimRequests {
	r := &ClaimRequests{c}
	calls.Add(c.Calls, c, shardHolder, shardClaim, shardBar, shardRefuse, shardNames, shardHolders, shardReplaced)
	return r
}
