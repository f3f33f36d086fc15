package bulk

import (
	"context"
	"errors"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/subjects"
	"facet/shard/job"
)

// Leased returns the number of files that this node has lent to workers.
func (r *JobRequests) Leased() (files int) {
	r.leases.mu.Lock()
	defer r.leases.mu.Unlock()
	now := time.Now()
	for _, piece := range r.leases.lent {
		if !now.After(piece.until) {
			files += len(piece.indexes)
		}
	}
	return files
}

// Piece is a part of a job that was lent to this node. It is for one goroutine.
type Piece struct {
	// Tenant is the owner of the files in the object store.
	Tenant id.Tenant
	Tasks  []Task

	shard id.Shard
	lease uint64
	name  shardfsm.JobName
}

// Task is one file to register.
type Task struct {
	Filename string

	index  uint32
	batch  id.Batch
	access router.Access
	tags   []uint32
	note   router.Note
	// expires is when the event expires, in milliseconds since 1970, or 0.
	expires int64
}

// TaskResult is the outcome of a task.
type TaskResult struct {
	Task     Task
	Attempts int // from 1
	// Registered is nil when the file could not be registered. Reason then explains
	// why.
	Registered *router.Registered
	Reason     string
}

// Idle reports whether this node's replica of a shard has no unfinished job. It
// returns false for a shard without a replica here.
func (r *JobRequests) Idle(shard id.Shard) bool {
	m, here := r.cluster.Groups.Shard(shard)
	return here && m.Jobs().Left(job.Registrations) == 0
}

// TakePiece borrows a piece of a job from a shard's leader. It returns nil when
// there is no work.
func (r *JobRequests) TakePiece(ctx context.Context, shard id.Shard, n int) (*Piece, error) {
	a, err := calls.CallLeader(ctx, r.cluster.Calls, jobTake, shard, uint32(n))
	if err != nil || a.Lease == 0 {
		return nil, err
	}
	g, there, err := cluster.ConfirmedGallery(ctx, r.cluster, a.Name.Gallery, a.Name.Generation)
	if err != nil || !there { // the shards of a deleted gallery drop the job soon
		return nil, err
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return nil, err
	}
	p := &Piece{Tenant: g.Tenant, shard: shard, lease: a.Lease, name: a.Name}
	for _, rec := range a.Records {
		item, err := job.OpenItem(key, job.Name(a.Name), rec.Index, rec.Sealed)
		if err != nil {
			return nil, err
		}
		p.Tasks = append(p.Tasks, Task{
			Filename: item.Filename, index: rec.Index, batch: a.Name.Batch, tags: item.Tags, note: router.Note{ExternalID: item.ExternalID, UserData: item.UserData},
			expires: item.Expires,
			access:  router.Access{Tenant: g.Tenant, Application: a.Application, Gallery: g.ID},
		})
	}
	return p, nil
}

// RegisterTask enrols the face of a task's image once. A repetition gets the first
// outcome.
//
// A shard remembers the operation of an item for minutes only, so that a large job
// does not fill its memory of operations. After that, the subject itself prevents a
// second one, because its id follows from the operation.
func (r *JobRequests) RegisterTask(ctx context.Context, t Task, image []byte) (router.Registered, error) {
	if _, err := cluster.ConfirmedLookup(ctx, r.cluster, func() (struct{}, bool) {
		_, ok := r.cluster.Groups.Meta().Application(t.access.Application)
		return struct{}{}, ok
	}); err != nil {
		if router.KindOf(err) == router.NotFound {
			return router.Registered{}, router.Errorf(router.Forbidden, "", "the application was deleted")
		}
		return router.Registered{}, err
	}
	g, app, err := r.cluster.Of(t.access)
	if err != nil {
		return router.Registered{}, err
	}
	face, err := r.faces.Enrolled(ctx, image, app)
	if err != nil {
		return router.Registered{}, err
	}
	op := itemOperation(t.batch, t.index)
	return cluster.WithFreshShards(ctx, r.cluster, g, func(g cluster.Gallery) (router.Registered, error) {
		home, err := r.subjects.Home(ctx, g, op)
		if err != nil {
			return router.Registered{}, err
		}
		p := subjects.Placement{
			Gallery: g, Application: app, Home: home, Subject: g.Subject(op, home),
			Write: router.Write{Operation: op, Request: op}, Face: face, Tags: t.tags, Note: t.note, Expires: t.expires,
		}
		out, err := r.subjects.Put(ctx, p)
		if e, ok := errors.AsType[*router.Error](err); ok && (e.Reason == router.ReasonKeyReused || e.Reason == router.ReasonSubjectDeleted) {
			// Only this item has the operation, so an earlier try made the subject.
			return router.Registered{Subject: p.Subject, Event: p.Event(), Attributes: face.Attributes, Ignored: face.Ignored}, nil
		}
		return out, err
	})
}

// Report sends results of tasks of p, perhaps none, and renews the lease of p. It
// must be called more often than every LeaseTime. held is false when the lease was
// lost.
func (r *JobRequests) Report(ctx context.Context, p *Piece, results []TaskResult) (held bool, err error) {
	g, ok := r.cluster.Find(p.name.Gallery)
	if !ok || g.Generation != p.name.Generation {
		return false, nil
	}
	key, err := r.cluster.DataKey(g.Gallery)
	if err != nil {
		return false, err
	}
	q := FinishQuery{Lease: p.lease, Finish: shardfsm.FinishJob{Name: p.name, Time: time.Now().UnixMilli()}}
	for _, res := range results {
		o := job.Outcome{Reason: res.Reason}
		out := job.Result{Index: res.Task.index, Attempts: uint32(res.Attempts)}
		if res.Registered != nil {
			out.Success, out.Subject, out.Event = true, res.Registered.Subject, res.Registered.Event
			o.Attributes = new(engine.Attributes)
			*o.Attributes = res.Registered.Attributes
			o.Ignored = res.Registered.Ignored
		}
		out.Sealed = job.SealOutcome(key, job.Name(p.name), res.Task.index, o)
		q.Finish.Results = append(q.Finish.Results, out)
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, JobFinish, p.shard, q)
	return a.Held, err
}

// Postpone returns a piece whose tenant has used up a quota. The shard's leader lends no
// files for the piece's gallery for a while.
func (r *JobRequests) Postpone(ctx context.Context, p *Piece) error {
	q := FinishQuery{Lease: p.lease, Finish: shardfsm.FinishJob{Name: p.name}, Postpone: true}
	_, err := calls.CallLeader(ctx, r.cluster.Calls, JobFinish, p.shard, q)
	return err
}

// ExpireJobs drops the records of old jobs on the shards that this node leads.
func (r *JobRequests) ExpireJobs(ctx context.Context) error {
	var failed []error
	for _, shard := range r.cluster.Shards() {
		g, book, err := LeadingJobs(r.cluster, shard)
		if err != nil {
			continue // another node leads the shard
		}
		if now := r.cluster.Clock.Now().UnixMilli(); book.Due(now) {
			_, err := cluster.Propose(ctx, g, shardfsm.ExpireJobsOp, shardfsm.ExpireJobs{Time: now})
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
