package lookup

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// Serve adds the methods that a node carries out for peers.
func Serve(c *cluster.Cluster) {
	calls.Add(c.Calls, c, shardEvents, shardSubject, shardPresent, shardMergeState)
}
