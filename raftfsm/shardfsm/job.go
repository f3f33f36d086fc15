package shardfsm

import (
	"errors"

	"facet/internal/id"
	"facet/shard/job"
)

// Jobs are the bulk registrations that readers look at. It stays the same object
// over a Restore.
func (m *Machine) Jobs() *job.Book { return m.jobs }

// JobName names a batch of a gallery.
type JobName struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Batch      id.Batch   `cbor:"3,keyasint"`
}

// JobAnswer answers all commands on jobs: Done, Replayed (BeginJob: it was begun
// before), Conflict, StaleGeneration, Outdated (BeginJob), JobsFull, UnknownJob or
// JobItemsMissing.
// The counts are set for Done and Replayed.
type JobAnswer struct {
	Status Status `cbor:"1,keyasint"`
	Total  uint32 `cbor:"2,keyasint"`
	Items  uint32 `cbor:"3,keyasint"`
	Done   uint32 `cbor:"4,keyasint"`
	Open   bool   `cbor:"5,keyasint,omitempty"`
}

// onJob applies a command to a batch of a generation that is not fenced off.
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
	case errors.Is(err, job.ErrPlace):
		return JobItemsMissing
	default:
		panic("bug: a job fails in an unknown way: " + err.Error())
	}
}

// BeginJob makes a batch that nobody sees before OpenJob. The batch's id is derived
// from the client's write, so that a retry begins the same one.
type BeginJob struct {
	Name        JobName        `cbor:"1,keyasint"`
	Application id.Application `cbor:"2,keyasint"`
	// Request is a hash of the request's body.
	Request [16]byte `cbor:"3,keyasint"`
	Total   uint32   `cbor:"4,keyasint"`
	// Time is the proposer's clock in milliseconds since 1970.
	Time int64 `cbor:"5,keyasint"`
	// Epoch is the gallery's by which the shard was chosen; if the shard knows a later
	// one, the answer is Outdated, unless the batch was begun. 0 does not ask. Since
	// metafsm.LevelJobEpoch.
	Epoch uint32 `cbor:"6,keyasint,omitempty"`
}

func (c BeginJob) apply(m *Machine) JobAnswer {
	known := false
	a := m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		_, err := m.jobs.Find(job.Name(c.Name))
		known = err == nil
		if !known && c.Epoch != 0 && m.shard.Epoch(c.Name.Gallery) > c.Epoch {
			return job.Progress{}, errOutdated
		}
		return m.jobs.Begin(job.Begin{
			Name: job.Name(c.Name), Application: c.Application, Request: c.Request, Total: c.Total, Time: now,
		})
	})
	if known && a.Status == Done {
		a.Status = Replayed
	}
	return a
}

// AddJob gives a batch its items from index First on, each by job.SealItem. Those
// that came before are passed over.
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

// OpenJob lets the work on a complete batch begin.
type OpenJob struct {
	Name JobName `cbor:"1,keyasint"`
	Time int64   `cbor:"2,keyasint"`
}

func (c OpenJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, error) {
		return m.jobs.Open(job.Name(c.Name), now)
	})
}

// FinishJob notes what became of items of a batch; each item's first result counts.
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

// ExpireJobs drops the batches that are kept for too long by Time.
type ExpireJobs struct {
	Time int64 `cbor:"1,keyasint"`
}

func (c ExpireJobs) apply(m *Machine) JobAnswer {
	m.jobs.Expire(m.advance(c.Time))
	return JobAnswer{Status: Done}
}
