package bulk

import (
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/subjects"
)

// New returns the requests of a node, and serves those of its peers.
func New(c *cluster.Cluster, of *subjects.SubjectRequests, photos *faces.FaceRequests, store bool) *JobRequests {
	r := &JobRequests{cluster: c, faces: photos, subjects: of, bulk: store}
	calls.Add(c.Calls, r, jobTake)
	calls.Add(c.Calls, r, JobFinish)
	calls.Add(c.Calls, c, JobBegin)
	calls.Add(c.Calls, c, jobAdd)
	calls.Add(c.Calls, c, jobOpen)
	calls.Add(c.Calls, c, jobKnows)
	calls.Add(c.Calls, c, JobPage)
	calls.Add(c.Calls, c, jobList)
	return r
}
