// Package galleries carries out requests about galleries, applications and tags, and purges
// galleries that were deleted.
package galleries

import "facet/router/cluster"

// GalleryRequests serves requests about galleries and applications.
type GalleryRequests struct{ cluster *cluster.Cluster }
