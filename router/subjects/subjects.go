// Package subjects registers, updates and removes subjects and their events. It finds slots for
// them, guards enrolments against persons who are enrolled already, and expires events.
package subjects

import (
	"facet/router"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
)

// SubjectRequests serves requests about subjects and their events.
type SubjectRequests struct {
	cluster *cluster.Cluster
	faces   *faces.FaceRequests
	claims  *claims.ClaimRequests
	memory  router.Memory
}
