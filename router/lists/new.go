package lists

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *claims.ClaimRequests) *ListRequests {
	r := &ListRequests{c, of}
	calls.Add(c.Calls, c, shardEntries, shardExpiring, shardSpan, shardBefore)
	return r
}
