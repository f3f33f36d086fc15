package routing

// listRequests serves the list of subjects.
type listRequests struct {
	cluster *cluster
	claims  *claims
}
