package bulk

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/job"
)

// LeadingJobs returns this node's replica of a shard and its jobs, or an error when this
// node knows that it does not lead the shard.
func LeadingJobs(r *cluster.Cluster, group id.Shard) (*raftfsm.Group, *job.Book, error) {
	g, ok := r.Groups.Group(group)
	m, here := r.Groups.Shard(group)
	if !ok || !here {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	if !g.IsLeader() {
		leader, _ := g.Leader()
		return nil, nil, &raftfsm.NotLeaderError{Leader: leader}
	}
	return g, m.Jobs(), nil
}

var (
	// JobBegin creates a job.
	JobBegin = cluster.ShardCommand("job.begin", shardfsm.BeginJobOp, func(c *shardfsm.BeginJob) *int64 { return &c.Time })
	jobAdd   = cluster.ShardCommand("job.add", shardfsm.AddJobOp, func(c *shardfsm.AddJob) *int64 { return &c.Time })
	jobOpen  = cluster.ShardCommand("job.open", shardfsm.OpenJobOp, func(c *shardfsm.OpenJob) *int64 { return &c.Time })
)

// jobKnowsQuery asks whether a shard has a job. Epoch is the gallery's epoch on the
// calling node, which would create the job on another shard.
type jobKnowsQuery struct {
	Name  shardfsm.JobName `cbor:"1,keyasint"`
	Epoch uint32           `cbor:"2,keyasint"`
}

// jobKnows reports whether a shard has a job. If not, the shard learns the epoch.
// It then refuses a first try that is still under way with an earlier epoch.
var jobKnows = calls.NewMethod("job.knows", func(ctx context.Context, r *cluster.Cluster, group id.Shard, q jobKnowsQuery) (bool, error) {
	m, err := cluster.WidenedMachine(ctx, r, group, shardfsm.Widen{Gallery: q.Name.Gallery, Generation: q.Name.Generation, Epoch: q.Epoch})
	if err != nil {
		return false, err
	}
	_, missing := m.Jobs().Find(job.Name(q.Name))
	return missing == nil, nil
})

// JobPageQuery asks for records of a job.
type JobPageQuery struct {
	Name   shardfsm.JobName `cbor:"1,keyasint"`
	From   uint32           `cbor:"2,keyasint"`
	Length uint32           `cbor:"3,keyasint"`
}

// jobPageAnswer is a page of a job's records. Known is false when there is no such
// job.
type jobPageAnswer struct {
	Known   bool         `cbor:"1,keyasint"`
	Total   uint32       `cbor:"2,keyasint"`
	Records []job.Record `cbor:"3,keyasint"`
	// Holder is that of job.Begin.
	Holder id.UUID `cbor:"4,keyasint,omitzero"`
}

// JobPage returns records of a job. BulkPageMax bounds their number.
var JobPage = cluster.MachineRead("job.page", func(m *shardfsm.Machine, q JobPageQuery) (jobPageAnswer, error) {
	// A fence drops the jobs of a deleted gallery. The caller may not know of it.
	if err := m.Shard().Check(q.Name.Gallery, q.Name.Generation); err != nil {
		return jobPageAnswer{}, err
	}
	records, p, missing := m.Jobs().Page(job.Name(q.Name), q.From, int(min(q.Length, router.BulkPageMax)))
	return jobPageAnswer{Known: missing == nil, Total: p.Total, Records: records, Holder: p.Holder}, nil
})

// JobListQuery asks for the jobs of a gallery: those that Holder has begun, or all if it is zero.
type JobListQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Holder     id.UUID    `cbor:"3,keyasint,omitzero"`
}

// jobList returns the newest JobsMax jobs of a gallery on a shard.
var jobList = cluster.MachineRead("job.list", func(m *shardfsm.Machine, q JobListQuery) ([]job.Summary, error) {
	return m.Jobs().List(q.Gallery, q.Generation, job.Registrations, q.Holder, router.JobsMax), nil
})

// Take lends a piece of at most n items of jobs of a kind. Those of a disabled tenant rest.
func (r *JobRequests) Take(group id.Shard, book *job.Book, kind job.Kind, n int) PieceAnswer {
	return r.leases.take(time.Now(), group, book, kind, n, r.works)
}

// works reports whether the items of a gallery may be worked on.
func (r *JobRequests) works(gallery id.Gallery) bool {
	meta := r.cluster.Groups.Meta()
	g, ok := meta.Gallery(gallery)
	return !ok || meta.TenantState(g.Tenant) == metafsm.TenantActive
}

// jobTake lends a piece of at most n items to the caller.
var jobTake = calls.NewMethod("job.take", func(_ context.Context, r *JobRequests, group id.Shard, n uint32) (PieceAnswer, error) {
	_, book, err := LeadingJobs(r.cluster, group)
	if err != nil {
		return PieceAnswer{}, err
	}
	return r.Take(group, book, job.Registrations, int(min(n, PieceMax))), nil
})

// FinishQuery contains results of a piece, perhaps none. It also renews the lease, or gives
// the piece back and postpones all work for its gallery.
type FinishQuery struct {
	Lease    uint64             `cbor:"1,keyasint"`
	Finish   shardfsm.FinishJob `cbor:"2,keyasint"`
	Postpone bool               `cbor:"3,keyasint,omitempty"`
}

// finishAnswer reports whether the lease still holds.
type finishAnswer struct {
	Held bool `cbor:"1,keyasint"`
}

// JobFinish records results of a piece, and renews its lease.
var JobFinish = calls.NewMethod("job.finish", func(ctx context.Context, r *JobRequests, group id.Shard, q FinishQuery) (finishAnswer, error) {
	g, _, err := LeadingJobs(r.cluster, group)
	if err != nil {
		return finishAnswer{}, err
	}
	if q.Postpone {
		r.leases.postpone(time.Now(), q.Lease, q.Finish.Name.Gallery)
		return finishAnswer{}, nil
	}
	if len(q.Finish.Results) > 0 {
		q.Finish.Time = cluster.OnTime(r.cluster.Clock, q.Finish.Time)
		a, err := cluster.Propose(ctx, g, shardfsm.FinishJobOp, q.Finish)
		if err != nil {
			return finishAnswer{}, err
		}
		if a.Status != shardfsm.Done { // the job was dropped with its gallery
			r.leases.drop(q.Lease)
			return finishAnswer{}, nil
		}
	}
	return finishAnswer{r.leases.renew(time.Now(), q.Lease, q.Finish)}, nil
})
