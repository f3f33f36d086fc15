package routing

import (
	"facet/router/cluster"
)

// jobRequests serves bulk registrations.
type jobRequests struct {
	cluster  *cluster.Cluster
	faces    *faceRequests
	subjects *subjectRequests
	leases   leases
	bulk     bool
}
