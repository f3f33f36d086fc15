package routing

import (
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/subjects"
)

// jobRequests serves bulk registrations.
type jobRequests struct {
	cluster  *cluster.Cluster
	faces    *faces.FaceRequests
	subjects *subjects.SubjectRequests
	leases   leases
	bulk     bool
}
