package router

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/shard/job"
)

// jobs returns this node's replica of a shard and its jobs, whether or not the node
// leads the shard.
func (r *jobRequests) jobs(group id.Shard) (*raftfsm.Group, *job.Book, error) {
	g, ok := r.groups.Group(group)
	m, here := r.groups.Shard(group)
	if !ok || !here {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	return g, m.Jobs(), nil
}

// leadingJobs returns what jobs returns, or an error when this node knows that it
// does not lead the shard.
func (r *jobRequests) leadingJobs(group id.Shard) (*raftfsm.Group, *job.Book, error) {
	g, book, err := r.jobs(group)
	if err == nil && !g.IsLeader() {
		leader, _ := g.Leader()
		err = &raftfsm.NotLeaderError{Leader: leader}
	}
	return g, book, err
}

var (
	jobBegin = shardCommand("job.begin", shardfsm.BeginJobOp, func(r *Router, c *shardfsm.BeginJob) { c.Time = r.onTime(c.Time) })
	jobAdd   = shardCommand("job.add", shardfsm.AddJobOp, func(r *Router, c *shardfsm.AddJob) { c.Time = r.onTime(c.Time) })
	jobOpen  = shardCommand("job.open", shardfsm.OpenJobOp, func(r *Router, c *shardfsm.OpenJob) { c.Time = r.onTime(c.Time) })
)

// readJobs returns the jobs of a shard when they include every write that was
// acknowledged before the call. Only the leader can confirm that.
func (r *jobRequests) readJobs(ctx context.Context, group id.Shard) (*job.Book, error) {
	g, book, err := r.jobs(group)
	if err != nil {
		return nil, err
	}
	index, err := g.ReadIndex(ctx)
	if err != nil {
		return nil, err
	}
	return book, g.WaitApplied(ctx, index)
}

// jobKnowsQuery asks whether a shard has a job. Epoch is the gallery's epoch on the
// calling node, which would create the job on another shard.
type jobKnowsQuery struct {
	Name  shardfsm.JobName `cbor:"1,keyasint"`
	Epoch uint32           `cbor:"2,keyasint"`
}

// jobKnows reports whether a shard has a job. If not, the shard learns the epoch.
// It then refuses a first try that is still under way with an earlier epoch.
var jobKnows = method[jobKnowsQuery, bool]{Name: "job.knows", Run: func(ctx context.Context, r *Router, group id.Shard, q jobKnowsQuery) (bool, error) {
	if _, err := r.widenedState(ctx, group, shardfsm.Widen{Gallery: q.Name.Gallery, Generation: q.Name.Generation, Epoch: q.Epoch}); err != nil {
		return false, err
	}
	_, book, err := r.jobs(group)
	if err != nil {
		return false, err
	}
	_, missing := book.Find(jobName(q.Name))
	return missing == nil, nil
}}

// jobPageQuery asks for records of a job.
type jobPageQuery struct {
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

var jobPage = method[jobPageQuery, jobPageAnswer]{Name: "job.page", Run: func(ctx context.Context, r *Router, group id.Shard, q jobPageQuery) (jobPageAnswer, error) {
	book, err := r.readJobs(ctx, group)
	if err != nil {
		return jobPageAnswer{}, err
	}
	// A fence drops the jobs of a deleted gallery. The caller may not know of it.
	if _, s, err := r.localReplica(group); err != nil {
		return jobPageAnswer{}, err
	} else if err := s.Check(q.Name.Gallery, q.Name.Generation); err != nil {
		return jobPageAnswer{}, outdated(err)
	}
	records, p, missing := book.Page(jobName(q.Name), q.From, int(min(q.Length, BulkPageMax)))
	return jobPageAnswer{Known: missing == nil, Total: p.Total, Records: records, Holder: p.Holder}, nil
}}

// jobListQuery asks for the jobs of a gallery: those that Holder has begun, or all if it is zero.
type jobListQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Holder     id.UUID    `cbor:"3,keyasint,omitzero"`
}

// jobList returns the newest JobsMax jobs of a gallery on a shard.
var jobList = method[jobListQuery, []job.Summary]{Name: "job.list", Run: func(ctx context.Context, r *Router, group id.Shard, q jobListQuery) ([]job.Summary, error) {
	book, err := r.readJobs(ctx, group)
	if err != nil {
		return nil, err
	}
	return book.List(q.Gallery, q.Generation, job.Registrations, q.Holder, JobsMax), nil
}}

// pieceAnswer is a piece of a job. Lease is 0 when there is no work.
type pieceAnswer struct {
	Lease       uint64           `cbor:"1,keyasint"`
	Name        shardfsm.JobName `cbor:"2,keyasint"`
	Application id.Application   `cbor:"3,keyasint"`
	Records     []job.Record     `cbor:"4,keyasint"`
}

// works reports whether the files of a gallery may be registered. Those of a disabled tenant rest.
func (r *cluster) works(gallery id.Gallery) bool {
	meta := r.groups.Meta()
	g, ok := meta.Gallery(gallery)
	return !ok || meta.TenantState(g.Tenant) == metafsm.TenantActive
}

// jobTake lends a piece of at most n items to the caller.
var jobTake = method[uint32, pieceAnswer]{Name: "job.take", Run: func(_ context.Context, r *Router, group id.Shard, n uint32) (pieceAnswer, error) {
	_, book, err := r.leadingJobs(group)
	if err != nil {
		return pieceAnswer{}, err
	}
	return r.leases.take(time.Now(), group, book, job.Registrations, int(min(n, PieceMax)), r.works), nil
}}

// finishQuery contains results of a piece, perhaps none. It also renews the lease, or gives
// the piece back and postpones all work for its gallery.
type finishQuery struct {
	Lease    uint64             `cbor:"1,keyasint"`
	Finish   shardfsm.FinishJob `cbor:"2,keyasint"`
	Postpone bool               `cbor:"3,keyasint,omitempty"`
}

// finishAnswer reports whether the lease still holds.
type finishAnswer struct {
	Held bool `cbor:"1,keyasint"`
}

var jobFinish = method[finishQuery, finishAnswer]{Name: "job.finish", Run: func(ctx context.Context, r *Router, group id.Shard, q finishQuery) (finishAnswer, error) {
	g, _, err := r.leadingJobs(group)
	if err != nil {
		return finishAnswer{}, err
	}
	if q.Postpone {
		r.leases.postpone(time.Now(), q.Lease, q.Finish.Name.Gallery)
		return finishAnswer{}, nil
	}
	if len(q.Finish.Results) > 0 {
		q.Finish.Time = r.onTime(q.Finish.Time)
		a, err := propose(ctx, g, shardfsm.FinishJobOp, q.Finish)
		if err != nil {
			return finishAnswer{}, err
		}
		if a.Status != shardfsm.Done { // the job was dropped with its gallery
			r.leases.drop(q.Lease)
			return finishAnswer{}, nil
		}
	}
	return finishAnswer{r.leases.renew(time.Now(), q.Lease, q.Finish)}, nil
}}
