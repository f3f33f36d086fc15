package searches

import (
	"time"

	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/faces"
)

// New returns the part of a node, and adds the methods that it carries out for peers. m may be nil.
func New(c *cluster.Cluster, of *faces.FaceRequests, m router.Meter) *SearchRequests {
	if m == nil {
		m = unmeasured{}
	}
	r := &SearchRequests{cluster: c, faces: of, meter: m}
	calls.Add(c.Calls, r, ShardSearch)
	calls.Add(c.Calls, c, shardMatches, shardMerged)
	return r
}

type unmeasured struct{ calls.Meter }

func (unmeasured) Searched(_, _, _ time.Duration)   {}
func (unmeasured) SearchedShard(int, time.Duration) {}
