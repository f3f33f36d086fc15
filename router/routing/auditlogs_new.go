package routing

import (
	"facet/router/calls"
)

// newAuditLogs returns the requests of a node, and serves those of its peers.
func newAuditLogs(c *cluster) *auditRequests {
	r := &auditRequests{cluster: c}
	calls.Add(c.calls, c, auditBegin)
	calls.Add(c.calls, c, auditAppend)
	calls.Add(c.calls, c, shardRemembers)
	calls.Add(c.calls, c, auditHead)
	calls.Add(c.calls, c, auditRead)
	calls.Add(c.calls, c, auditHashes)
	return r
}
