package routing

import (
	"facet/router/calls"
)

// newVerifications returns the requests of a node, and serves those of its peers.
func newVerifications(c *cluster, of *faceRequests, reviews *caseRequests) *verificationRequests {
	r := &verificationRequests{c, of, reviews}
	calls.Add(c.calls, c, shardBest)
	return r
}
