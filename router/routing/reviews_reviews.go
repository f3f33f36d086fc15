package routing

// caseRequests serves cases.
type caseRequests struct {
	cluster *cluster
	claims  *claims
	work    *caseWork
}
