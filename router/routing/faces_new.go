package routing

import (
	"context"

	"facet/engine/score"
	"facet/router"
	"facet/router/cluster"
)

// newFaces returns the requests of a node. A nil turn makes nobody wait.
func newFaces(c *cluster.Cluster, e router.Extractor, table *score.Table, turn func(context.Context) (end func(), err error)) *faceRequests {
	if turn == nil {
		turn = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return &faceRequests{c, e, turn, table}
}
