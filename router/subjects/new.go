package subjects

import (
	"facet/router"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/router/faces"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *faces.FaceRequests, names *claims.ClaimRequests, m router.Memory) *SubjectRequests {
	r := &SubjectRequests{c, of, names, m}
	calls.Add(c.Calls, r, shardRegister, ShardAdd)
	calls.Add(c.Calls, c, shardGrant, shardReplace, shardRemove, shardActivate, shardWithdraw, shardReturn, shardKnows, shardUnregister)
	return r
}
