package routing

import (
	"facet/router"
	"facet/router/cluster"
)

// searchRequests serves searches.
type searchRequests struct {
	cluster *cluster.Cluster
	faces   *faceRequests
	meter   router.Meter
	shares  sharing
}
