package routing

import (
	"facet/router/calls"
)

// newDuplicates returns the requests of a node, and serves those of its peers.
func newDuplicates(c *cluster, of *jobRequests) *duplicateRequests {
	r := &duplicateRequests{c, of}
	calls.Add(c.calls, r, jobTakeBlock)
	calls.Add(c.calls, c, jobDrop)
	calls.Add(c.calls, c, jobRedact)
	calls.Add(c.calls, c, jobPut)
	calls.Add(c.calls, c, jobReport)
	calls.Add(c.calls, c, shardBlocks)
	calls.Add(c.calls, c, shardProbes)
	calls.Add(c.calls, c, shardPairs)
	return r
}
