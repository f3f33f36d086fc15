// Package faces extracts the face of a photo, or of several photos of one person, and compares
// photos with each other.
package faces

import (
	"context"

	"facet/engine/score"
	"facet/router"
	"facet/router/cluster"
)

// FaceRequests serves requests about images and single faces.
type FaceRequests struct {
	cluster   *cluster.Cluster
	extractor router.Extractor
	turn      func(context.Context) (end func(), err error)
	Table     *score.Table
}
