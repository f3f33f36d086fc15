package routing

import (
	"context"

	"facet/engine/score"
	"facet/router"
	"facet/router/cluster"
)

// faceRequests serves requests about images and single faces.
type faceRequests struct {
	cluster   *cluster.Cluster
	extractor router.Extractor
	turn      func(context.Context) (end func(), err error)
	table     *score.Table
}
