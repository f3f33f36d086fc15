package routing

import (
	"facet/router/cluster"
	"facet/router/faces"
)

// jobRequests serves bulk registrations.
type jobRequests struct {
	cluster  *cluster.Cluster
	faces    *faces.FaceRequests
	subjects *subjectRequests
	leases   leases
	bulk     bool
}
