package routing

import (
	"facet/router/cluster"
)

// accessRequests serves requests about tenants, access keys and nodes.
type accessRequests struct {
	cluster *cluster.Cluster
	// keyChange has room for one: as the leader of meta, this node changes one
	// access key at a time.
	keyChange chan struct{}
}
