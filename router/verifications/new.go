package verifications

import (
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/reviews"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *faces.FaceRequests, reviews *reviews.CaseRequests) *VerificationRequests {
	r := &VerificationRequests{c, of, reviews}
	calls.Add(c.Calls, c, shardBest)
	return r
}
