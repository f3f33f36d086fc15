package duplicates

import (
	"facet/router/bulk"
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *bulk.JobRequests) *DuplicateRequests {
	r := &DuplicateRequests{c, of}
	calls.Add(c.Calls, r, jobTakeBlock)
	calls.Add(c.Calls, c, jobDrop, jobRedact, jobPut, jobReport, shardBlocks, shardProbes, shardPairs)
	return r
}
