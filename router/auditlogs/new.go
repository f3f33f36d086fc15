package auditlogs

import (
	"facet/router/calls"
	"facet/router/cluster"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster) *AuditRequests {
	r := &AuditRequests{cluster: c}
	calls.Add(c.Calls, c, auditBegin, auditAppend, shardRemembers, auditHead, auditRead, auditHashes)
	return r
}
