package routing

import (
	"facet/router/claims"
	"facet/router/cluster"
)

// listRequests serves the list of subjects.
type listRequests struct {
	cluster *cluster.Cluster
	claims  *claims.ClaimRequests
}
