package routing

import (
	"facet/router/calls"
)

// serveRoom serves the requests of peers.
func serveRoom(c *cluster) {
	calls.Add(c.calls, c, shardRoom)
}
