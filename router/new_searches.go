package router

import (
	"facet/router/calls"
)

// newSearches returns the requests of a node, and serves those of its peers.
func newSearches(c *cluster, of *faceRequests, m Meter) *searchRequests {
	r := &searchRequests{cluster: c, faces: of, meter: m}
	calls.Add(c.calls, r, shardSearch)
	calls.Add(c.calls, c, shardMatches)
	calls.Add(c.calls, c, shardMerged)
	return r
}
