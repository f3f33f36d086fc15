// Package lists returns pages of a gallery's subjects, merged from the lists of its shards.
package lists

import (
	"facet/router/claims"
	"facet/router/cluster"
)

// ListRequests serves the list of subjects.
type ListRequests struct {
	cluster *cluster.Cluster
	claims  *claims.ClaimRequests
}
