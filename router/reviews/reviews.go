// Package reviews keeps the cases of doubtful verifications, on which people decide.
package reviews

import (
	"facet/router/claims"
	"facet/router/cluster"
)

// CaseRequests serves cases.
type CaseRequests struct {
	cluster *cluster.Cluster
	claims  *claims.ClaimRequests
	work    *caseWork
}
