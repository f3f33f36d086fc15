package galleries

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *GalleryRequests {
	r := &GalleryRequests{c}
	calls.Add(c.Calls, c, ShardFence)
	calls.Add(c.Calls, c, shardPurge)
	calls.Add(c.Calls, c, shardCounts)
	return r
}
