package lookup

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// Serve serves the requests of peers.
func Serve(c *cluster.Cluster) {
	calls.Add(c.Calls, c, shardEvents, shardSubject, shardPresent, shardMergeState)
}
