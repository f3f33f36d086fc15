package tenants

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster) *TenantRequests {
	r := &TenantRequests{c, make(chan struct{}, 1)}
	calls.Add(c.Calls, r, metaNewKey, metaRevokeKey)
	calls.Add(c.Calls, c, shardTaken)
	return r
}
