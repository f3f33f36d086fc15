package routing

import (
	"facet/router/cluster"
)

// caseRequests serves cases.
type caseRequests struct {
	cluster *cluster.Cluster
	claims  *claims
	work    *caseWork
}
