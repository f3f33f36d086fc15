package routing

import (
	"facet/router/calls"
)

// newTenants returns the requests of a node, and serves those of its peers.
func newTenants(c *cluster) *accessRequests {
	r := &accessRequests{c, make(chan struct{}, 1)}
	calls.Add(c.calls, r, metaNewKey)
	calls.Add(c.calls, r, metaRevokeKey)
	calls.Add(c.calls, c, shardTaken)
	return r
}
