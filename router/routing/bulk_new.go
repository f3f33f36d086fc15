package routing

import (
	"facet/router/calls"
)

// newJobs returns the requests of a node, and serves those of its peers.
func newJobs(c *cluster, of *subjectRequests, photos *faceRequests, store bool) *jobRequests {
	r := &jobRequests{cluster: c, faces: photos, subjects: of, bulk: store}
	calls.Add(c.calls, r, jobTake)
	calls.Add(c.calls, r, jobFinish)
	calls.Add(c.calls, c, jobBegin)
	calls.Add(c.calls, c, jobAdd)
	calls.Add(c.calls, c, jobOpen)
	calls.Add(c.calls, c, jobKnows)
	calls.Add(c.calls, c, jobPage)
	calls.Add(c.calls, c, jobList)
	return r
}
