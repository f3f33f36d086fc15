package galleries

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster) *GalleryRequests {
	r := &GalleryRequests{c}
	calls.Add(c.Calls, c, ShardFence, shardPurge, shardCounts)
	return r
}
