package routing

import (
	"time"

	"facet/router"
	"facet/router/calls"
)

// newSearches returns the requests of a node, and serves those of its peers. m may be nil.
func newSearches(c *cluster, of *faceRequests, m router.Meter) *searchRequests {
	if m == nil {
		m = unmeasured{}
	}
	r := &searchRequests{cluster: c, faces: of, meter: m}
	calls.Add(c.calls, r, shardSearch)
	calls.Add(c.calls, c, shardMatches)
	calls.Add(c.calls, c, shardMerged)
	return r
}

type unmeasured struct{ calls.Meter }

func (unmeasured) Searched(_, _, _ time.Duration) {}

func (unmeasured) SearchedShard(int, time.Duration) {}
