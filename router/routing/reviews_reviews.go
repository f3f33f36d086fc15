package routing

import (
	"facet/router/claims"
	"facet/router/cluster"
)

// caseRequests serves cases.
type caseRequests struct {
	cluster *cluster.Cluster
	claims  *claims.ClaimRequests
	work    *caseWork
}
