package routing

import (
	"facet/router"
)

// subjectRequests serves requests about subjects and their events.
type subjectRequests struct {
	cluster *cluster
	faces   *faceRequests
	claims  *claims
	memory  router.Memory
}
