// Package tenants carries out requests about tenants, their access keys and quotas, and the records
// of nodes.
package tenants

import "facet/router/cluster"

// TenantRequests serves requests about tenants, access keys and nodes.
type TenantRequests struct {
	cluster *cluster.Cluster
	// keyChange has room for one: as the leader of meta, this node changes one
	// access key at a time.
	keyChange chan struct{}
}
