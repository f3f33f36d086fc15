package routing

import (
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
)

// newReviews returns the requests of a node, and serves those of its peers.
func newReviews(c *cluster.Cluster, of *claims.ClaimRequests) *caseRequests {
	r := &caseRequests{c, of, newCaseWork()}
	calls.Add(c.Calls, r, caseOpen)
	calls.Add(c.Calls, r, caseDecide)
	calls.Add(c.Calls, r, caseList)
	return r
}
