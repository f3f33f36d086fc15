package merges

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/subjects"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *subjects.SubjectRequests, names *claims.ClaimRequests) *MergeRequests {
	r := &MergeRequests{c, of, names}
	calls.Add(c.Calls, c, shardBeginMerge, shardStopReceiving, shardIndex)
	return r
}
