package lists

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster, of *claims.ClaimRequests) *ListRequests {
	r := &ListRequests{c, of}
	calls.Add(c.Calls, c, shardEntries, shardExpiring, shardSpan, shardBefore)
	return r
}
