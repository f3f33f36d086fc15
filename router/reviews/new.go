package reviews

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *claims.ClaimRequests) *CaseRequests {
	r := &CaseRequests{c, of, newCaseWork()}
	calls.Add(c.Calls, r, caseOpen, caseDecide, caseList)
	return r
}
