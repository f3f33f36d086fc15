package shardfsm

import (
	"cmp"
	"errors"

	"facet/internal/id"
	"facet/raftfsm/operation"
	"facet/shard/job"
)

// Jobs returns the bulk registrations, and the comparisons of galleries with themselves. Restore keeps the object.
func (m *Machine) Jobs() *job.Book { return m.jobs }

// JobName names a batch of a gallery.
type JobName struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Batch      id.Batch   `cbor:"3,keyasint"`
}

// JobAnswer answers all commands on jobs. The status is Done, Conflict, StaleGeneration,
// JobsFull, UnknownJob or JobItemsMissing. BeginJob may also answer Replayed, if the batch
// exists or is remembered, Outdated, OverJobs, OverJobItems, OpsFull or OverWrites. The counts are set for
// Done and Replayed.
type JobAnswer struct {
	Status Status `cbor:"1,keyasint"`
	Total  uint32 `cbor:"2,keyasint"`
	Items  uint32 `cbor:"3,keyasint"`
	Done   uint32 `cbor:"4,keyasint"`
	Open   bool   `cbor:"5,keyasint,omitempty"`
}

// onJob applies a command to a batch, unless a fence shuts out the batch's generation.
func (m *Machine) onJob(n JobName, time int64, effect func(now int64) (job.Progress, error)) JobAnswer {
	now := m.advance(time)
	if m.shard.Check(n.Gallery, n.Generation) != nil {
		return JobAnswer{Status: StaleGeneration}
	}
	p, err := effect(now)
	if err != nil {
		return JobAnswer{Status: jobStatus(err)}
	}
	return JobAnswer{Status: Done, Total: p.Total, Items: p.Items, Done: p.Done, Open: p.Open}
}

// errOutdated is returned when the gallery lies on more shards than the proposer knew.
var errOutdated = errors.New("shardfsm: the gallery lies on more shards")

// jobStatus returns the status for an error of the book.
func jobStatus(err error) Status {
	switch {
	case errors.Is(err, errOutdated):
		return Outdated
	case errors.Is(err, job.ErrUnknown):
		return UnknownJob
	case errors.Is(err, job.ErrConflict):
		return Conflict
	case errors.Is(err, job.ErrFull):
		return JobsFull
	case errors.Is(err, job.ErrJobs):
		return OverJobs
	case errors.Is(err, job.ErrItems):
		return OverJobItems
	case errors.Is(err, job.ErrPlace):
		return JobItemsMissing
	default:
		panic("bug: a job fails in an unknown way: " + err.Error())
	}
}

// BeginJob creates a batch that nobody sees before OpenJob. The id of the batch follows
// from the client's write, so that a retry has the same id.
type BeginJob struct {
	Name        JobName        `cbor:"1,keyasint"`
	Application id.Application `cbor:"2,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"3,keyasint"`
	Total   uint32   `cbor:"4,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
	// Epoch is the gallery's epoch with which the proposer chose the shard. If the shard
	// knows a later one, the answer is Outdated, unless the batch exists. 0 skips the
	// check.
	Epoch uint32 `cbor:"6,keyasint,omitempty"`
	// Share is the tenant's.
	Share JobShare `cbor:"7,keyasint,omitzero"`
	Kind  job.Kind `cbor:"8,keyasint,omitempty"`
	// Holder is a keyed hash of who began the batch.
	Holder id.UUID `cbor:"9,keyasint,omitzero"`
	// Write is that of OpenJob. A remembered one is answered as if the batch were there, and has no effect.
	Write JobWrite `cbor:"10,keyasint,omitzero"`
}

// JobWrite is the write of a client that the machine remembers although the batch may go. The zero JobWrite is
// not remembered.
type JobWrite struct {
	Op      id.Operation `cbor:"1,keyasint"`
	Request [16]byte     `cbor:"2,keyasint"`
	Keyed   bool         `cbor:"3,keyasint,omitempty"`
	Share   Share        `cbor:"4,keyasint,omitzero"`
}

func (w JobWrite) name() operation.Name {
	return operation.Name{Op: w.Op, Request: w.Request, Keyed: w.Keyed}
}

func (c BeginJob) apply(m *Machine) JobAnswer {
	if _, err := m.jobs.Find(job.Name(c.Name)); err != nil && c.Write != (JobWrite{}) {
		m.advance(c.Time)
		switch _, status := m.once(place{c.Name.Gallery, c.Name.Generation}, c.Write.name(), c.Write.Share, OpenJobOp.Code); status {
		case 0:
		case Replayed:
			return JobAnswer{Status: Replayed, Total: c.Total, Items: c.Total, Done: c.Total, Open: true}
		default:
			return JobAnswer{Status: status}
		}
	}
	known := false
	a := m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		_, err := m.jobs.Find(job.Name(c.Name))
		known = err == nil
		if !known && c.Epoch != 0 && m.shard.Epoch(c.Name.Gallery) > c.Epoch {
			return job.Progress{}, errOutdated
		}
		return m.jobs.Begin(job.Begin{
			Name: job.Name(c.Name), Application: c.Application, Request: c.Request, Total: c.Total, Time: now,
			Share: job.Share(c.Share), Kind: c.Kind, Holder: c.Holder,
		})
	})
	if known && a.Status == Done {
		a.Status = Replayed
	}
	return a
}

// AddJob adds items to a batch, from index First on. job.SealItem encrypts each item. AddJob
// skips items that the batch has.
type AddJob struct {
	Name  JobName  `cbor:"1,keyasint"`
	First uint32   `cbor:"2,keyasint"`
	Items [][]byte `cbor:"3,keyasint"`
	Time  int64    `cbor:"4,keyasint"`
}

func (c AddJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		return m.jobs.Add(job.Name(c.Name), c.First, c.Items, now)
	})
}

// OpenJob starts the work on a complete batch.
type OpenJob struct {
	Name JobName `cbor:"1,keyasint"`
	Time int64   `cbor:"2,keyasint"`
	// Write is the client's.
	Write JobWrite `cbor:"3,keyasint,omitzero"`
}

func (c OpenJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		p, err := m.jobs.Open(job.Name(c.Name), now)
		_, known := m.ops.Recall(c.Write.Op)
		if err == nil && c.Write != (JobWrite{}) && !known && !m.ops.Full(c.Write.name()) { // BeginJob found room
			m.remember(c.Name.Gallery, c.Write.name(), c.Write.Share, OpenJobOp.Code, c.Name.Batch.UUID)
		}
		return p, err
	})
}

// FinishJob records results of items of a batch. The first result of each item counts.
type FinishJob struct {
	Name    JobName      `cbor:"1,keyasint"`
	Results []job.Result `cbor:"2,keyasint"`
	Time    int64        `cbor:"3,keyasint"`
}

func (c FinishJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		return m.jobs.Finish(job.Name(c.Name), c.Results, now)
	})
}

// DropJob removes a batch.
type DropJob struct {
	Name JobName `cbor:"1,keyasint"`
	Time int64   `cbor:"2,keyasint"`
}

func (c DropJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(int64) (job.Progress, error) { return m.jobs.Drop(job.Name(c.Name)) })
}

// RedactJob replaces the results of finished items of a batch.
type RedactJob struct {
	Name    JobName      `cbor:"1,keyasint"`
	Results []job.Result `cbor:"2,keyasint"`
	Time    int64        `cbor:"3,keyasint"`
}

func (c RedactJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(int64) (job.Progress, error) { return m.jobs.Redact(job.Name(c.Name), c.Results) })
}

// PutItem replaces an item of the batch that has the pairs of different subjects of a gallery, or its cases, if
// its text is still Old (job.Put).
type PutItem struct {
	Name  JobName  `cbor:"1,keyasint"`
	Index uint32   `cbor:"2,keyasint"`
	Old   []byte   `cbor:"3,keyasint,omitempty"`
	New   []byte   `cbor:"4,keyasint,omitempty"`
	Time  int64    `cbor:"5,keyasint"`
	Share JobShare `cbor:"6,keyasint,omitzero"`
	// Kind is job.Cases, or 0 for job.Different.
	Kind job.Kind `cbor:"7,keyasint,omitempty"`
}

func (c PutItem) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		return m.jobs.Put(job.Put{
			Name: job.Name(c.Name), Kind: cmp.Or(c.Kind, job.Different), Index: c.Index, Old: c.Old, New: c.New, Time: now, Share: job.Share(c.Share),
		})
	})
}

// ExpireJobs removes the batches that have expired at Time.
type ExpireJobs struct {
	Time int64 `cbor:"1,keyasint"`
}

func (c ExpireJobs) apply(m *Machine) JobAnswer {
	m.jobs.Expire(m.advance(c.Time))
	return JobAnswer{Status: Done}
}
