package routing

import (
	"facet/router/calls"
)

// newGalleries returns the requests of a node, and serves those of its peers.
func newGalleries(c *cluster) *galleryRequests {
	r := &galleryRequests{c}
	calls.Add(c.calls, c, shardFence)
	calls.Add(c.calls, c, shardPurge)
	calls.Add(c.calls, c, shardCounts)
	return r
}
