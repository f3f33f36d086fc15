package routing

import (
	"facet/router"
	"facet/router/calls"
)

// newSubjects returns the requests of a node, and serves those of its peers.
func newSubjects(c *cluster, of *faceRequests, names *claims, m router.Memory) *subjectRequests {
	r := &subjectRequests{c, of, names, m}
	calls.Add(c.calls, r, shardRegister)
	calls.Add(c.calls, r, shardAdd)
	calls.Add(c.calls, c, shardGrant)
	calls.Add(c.calls, c, shardReplace)
	calls.Add(c.calls, c, shardRemove)
	calls.Add(c.calls, c, shardActivate)
	calls.Add(c.calls, c, shardWithdraw)
	calls.Add(c.calls, c, shardReturn)
	calls.Add(c.calls, c, shardKnows)
	calls.Add(c.calls, c, shardUnregister)
	return r
}
