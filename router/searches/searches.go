// Package searches searches all shards of a gallery at once and merges their hits. It also answers
// the searches of other nodes, warms shards, and states in receipts what was searched.
package searches

import (
	"facet/router"
	"facet/router/cluster"
	"facet/router/faces"
)

// SearchRequests serves searches.
type SearchRequests struct {
	cluster *cluster.Cluster
	faces   *faces.FaceRequests
	meter   router.Meter
	shares  sharing
}
