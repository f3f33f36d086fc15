package bulk

import (
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/faces"
	"facet/router/subjects"
)

// New returns the part of a node, and adds the methods that it carries out for peers.
func New(c *cluster.Cluster, of *subjects.SubjectRequests, photos *faces.FaceRequests, store bool) *JobRequests {
	r := &JobRequests{cluster: c, faces: photos, subjects: of, bulk: store}
	calls.Add(c.Calls, r, jobTake, JobFinish)
	calls.Add(c.Calls, c, JobBegin, jobAdd, jobOpen, jobKnows, JobPage, jobList)
	return r
}
