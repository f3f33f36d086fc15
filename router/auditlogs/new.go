package auditlogs

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *AuditRequests {
	r := &AuditRequests{cluster: c}
	calls.Add(c.Calls, c, auditBegin)
	calls.Add(c.Calls, c, auditAppend)
	calls.Add(c.Calls, c, shardRemembers)
	calls.Add(c.Calls, c, auditHead)
	calls.Add(c.Calls, c, auditRead)
	calls.Add(c.Calls, c, auditHashes)
	return r
}
