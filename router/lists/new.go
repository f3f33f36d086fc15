package lists

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster, of *claims.ClaimRequests) *ListRequests {
	r := &ListRequests{c, of}
	calls.Add(c.Calls, c, shardEntries)
	calls.Add(c.Calls, c, shardExpiring)
	calls.Add(c.Calls, c, shardSpan)
	calls.Add(c.Calls, c, shardBefore)
	return r
}
