package routing

import (
	"facet/router/calls"
)

// newMerges returns the requests of a node, and serves those of its peers.
func newMerges(c *cluster, of *subjectRequests, names *claims) *mergeRequests {
	r := &mergeRequests{c, of, names}
	calls.Add(c.calls, c, shardBeginMerge)
	calls.Add(c.calls, c, shardStopReceiving)
	calls.Add(c.calls, c, shardIndex)
	return r
}
