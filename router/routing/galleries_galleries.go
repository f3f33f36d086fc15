package routing

import (
	"facet/router/cluster"
)

// galleryRequests serves requests about galleries and applications.
type galleryRequests struct{ cluster *cluster.Cluster }
