package routing

import (
	"facet/router/calls"
)

// newReviews returns the requests of a node, and serves those of its peers.
func newReviews(c *cluster, of *claims) *caseRequests {
	r := &caseRequests{c, of, newCaseWork()}
	calls.Add(c.calls, r, caseOpen)
	calls.Add(c.calls, r, caseDecide)
	calls.Add(c.calls, r, caseList)
	return r
}
