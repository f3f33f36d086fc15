package routing

import (
	"facet/router"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
)

// subjectRequests serves requests about subjects and their events.
type subjectRequests struct {
	cluster *cluster.Cluster
	faces   *faces.FaceRequests
	claims  *claims.ClaimRequests
	memory  router.Memory
}
