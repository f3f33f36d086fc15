package auditlogs

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster) *AuditRequests {
	r := &AuditRequests{cluster: c}
	calls.Add(c.Calls, c, auditBegin, auditAppend, shardRemembers, auditHead, auditRead, auditHashes)
	return r
}
