package galleries

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *GalleryRequests {
	r := &GalleryRequests{c}
	calls.Add(c.Calls, c, ShardFence, shardPurge, shardCounts)
	return r
}
