package routing

// jobRequests serves bulk registrations.
type jobRequests struct {
	cluster  *cluster
	faces    *faceRequests
	subjects *subjectRequests
	leases   leases
	bulk     bool
}
