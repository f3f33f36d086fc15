package routing

import (
	"facet/router"
)

// searchRequests serves searches.
type searchRequests struct {
	cluster *cluster
	faces   *faceRequests
	meter   router.Meter
	shares  sharing
}
