// Package reviews keeps the cases of doubtful verifications, on which people decide.
//
// A verification with a score in the review band of its application opens a case, which people close with
// their verdicts. The gallery's home keeps the cases in a job of its own (job.Cases), as it does the pairs of
// different subjects. An item of it is one case, or free. The home's leader changes one at a time
// (work.go).
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
