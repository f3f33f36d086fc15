package claims

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster) *ClaimRequests {
	r := &ClaimRequests{c}
	calls.Add(c.Calls, c, shardHolder, shardClaim, shardBar, shardRefuse, shardNames, shardHolders, shardReplaced)
	return r
}
