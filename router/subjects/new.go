package subjects

import (
	"facet/router"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster, of *faces.FaceRequests, names *claims.ClaimRequests, m router.Memory) *SubjectRequests {
	r := &SubjectRequests{c, of, names, m}
	calls.Add(c.Calls, r, shardRegister)
	calls.Add(c.Calls, r, ShardAdd)
	calls.Add(c.Calls, c, shardGrant)
	calls.Add(c.Calls, c, shardReplace)
	calls.Add(c.Calls, c, shardRemove)
	calls.Add(c.Calls, c, shardActivate)
	calls.Add(c.Calls, c, shardWithdraw)
	calls.Add(c.Calls, c, shardReturn)
	calls.Add(c.Calls, c, shardKnows)
	calls.Add(c.Calls, c, shardUnregister)
	return r
}
