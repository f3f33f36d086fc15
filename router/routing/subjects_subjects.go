package routing

import (
	"facet/router"
	"facet/router/cluster"
)

// subjectRequests serves requests about subjects and their events.
type subjectRequests struct {
	cluster *cluster.Cluster
	faces   *faceRequests
	claims  *claims
	memory  router.Memory
}
