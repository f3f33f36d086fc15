package routing

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/subjects"
)

// newMerges returns the requests of a node, and serves those of its peers.
func newMerges(c *cluster.Cluster, of *subjects.SubjectRequests, names *claims.ClaimRequests) *mergeRequests {
	r := &mergeRequests{c, of, names}
	calls.Add(c.Calls, c, shardBeginMerge)
	calls.Add(c.Calls, c, shardStopReceiving)
	calls.Add(c.Calls, c, shardIndex)
	return r
}
