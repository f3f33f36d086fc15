package routing

import (
	"context"

	"facet/engine/score"
	"facet/router"
)

// faceRequests serves requests about images and single faces.
type faceRequests struct {
	cluster   *cluster
	extractor router.Extractor
	turn      func(context.Context) (end func(), err error)
	table     *score.Table
}
