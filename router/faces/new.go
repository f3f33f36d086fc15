package faces

import (
	"context"

	"facet/engine/score"
	"facet/router"
	"facet/router/cluster"
)

// New returns the part of a node. A nil turn makes nobody wait.
func New(c *cluster.Cluster, e router.Extractor, table *score.Table, turn func(context.Context) (end func(), err error)) *FaceRequests {
	if turn == nil {
		turn = func(context.Context) (func(), error) { return func() {}, nil }
	}
	return &FaceRequests{c, e, turn, table}
}
