package routing

import (
	"facet/router/calls"
)

// newLists returns the requests of a node, and serves those of its peers.
func newLists(c *cluster, of *claims) *listRequests {
	r := &listRequests{c, of}
	calls.Add(c.calls, c, shardEntries)
	calls.Add(c.calls, c, shardExpiring)
	calls.Add(c.calls, c, shardSpan)
	calls.Add(c.calls, c, shardBefore)
	return r
}
