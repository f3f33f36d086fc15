package routing

import (
	"facet/router/calls"
)

// serveLookups serves the requests of peers.
func serveLookups(c *cluster) {
	calls.Add(c.calls, c, shardEvents)
	calls.Add(c.calls, c, shardSubject)
	calls.Add(c.calls, c, shardPresent)
	calls.Add(c.calls, c, shardMergeState)
}
