package checks

import (
	"facet/engine/score"
	"facet/router"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/listcheck"
	"facet/router/searches"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *faces.FaceRequests, searches *searches.SearchRequests, names *claims.ClaimRequests, table *score.Table, m router.Memory) *CheckRequests {
	r := &CheckRequests{c, of, searches, names, listcheck.New(table), m}
	calls.Add(c.Calls, r, checkCompare, checkEnd)
	return r
}
