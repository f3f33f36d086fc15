package routing

import (
	"facet/router"
	"facet/router/cluster"
	"facet/router/faces"
)

// searchRequests serves searches.
type searchRequests struct {
	cluster *cluster.Cluster
	faces   *faces.FaceRequests
	meter   router.Meter
	shares  sharing
}
