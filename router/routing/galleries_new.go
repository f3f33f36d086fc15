package routing

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// newGalleries returns the requests of a node, and serves those of its peers.
func newGalleries(c *cluster.Cluster) *galleryRequests {
	r := &galleryRequests{c}
	calls.Add(c.Calls, c, shardFence)
	calls.Add(c.Calls, c, shardPurge)
	calls.Add(c.Calls, c, shardCounts)
	return r
}
