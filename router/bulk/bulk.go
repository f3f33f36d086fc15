// Package bulk keeps jobs that register files of an object store, and lends pieces of jobs to
// workers.
package bulk

import (
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/subjects"
)

// JobRequests serves bulk registrations.
type JobRequests struct {
	cluster  *cluster.Cluster
	faces    *faces.FaceRequests
	subjects *subjects.SubjectRequests
	leases   leases
	bulk     bool
}
