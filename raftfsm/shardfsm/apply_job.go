package shardfsm

import (
	"errors"

	"facet/shard/job"
)

// Jobs are the bulk registrations that readers look at. It stays the same object
// over a Restore.
func (m *Machine) Jobs() *job.Book { return m.jobs }

func (n JobName) plain() job.Name {
	return job.Name{Gallery: n.Gallery, Generation: n.Generation, Batch: n.Batch}
}

func (c BeginJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, Status, error) {
		_, missing := m.jobs.Find(c.Name.plain())
		if missing != nil && c.Epoch != 0 && m.shard.Epoch(c.Name.Gallery) > c.Epoch {
			return job.Progress{}, Outdated, nil
		}
		p, err := m.jobs.Begin(job.Begin{
			Name: c.Name.plain(), Application: c.Application, Request: c.Request, Total: c.Total, Time: now,
		})
		if missing == nil {
			return p, Replayed, err
		}
		return p, Done, err
	})
}

func (c AddJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, Status, error) {
		p, err := m.jobs.Add(c.Name.plain(), c.First, c.Items, now)
		return p, Done, err
	})
}

func (c OpenJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, Status, error) {
		p, err := m.jobs.Open(c.Name.plain(), now)
		return p, Done, err
	})
}

func (c FinishJob) apply(m *Machine) JobAnswer {
	return m.onJob(c.Name, c.Time, func(now int64) (job.Progress, Status, error) {
		p, err := m.jobs.Finish(c.Name.plain(), c.Results, now)
		return p, Done, err
	})
}

func (c ExpireJobs) apply(m *Machine) JobAnswer {
	m.jobs.Expire(m.advance(c.Time))
	return JobAnswer{Status: Done}
}

// onJob carries out a command on a batch of a generation that is not fenced off.
func (m *Machine) onJob(n JobName, time int64, effect func(now int64) (job.Progress, Status, error)) JobAnswer {
	now := m.advance(time)
	answer := JobAnswer{Status: StaleGeneration}
	if m.shard.Check(n.Gallery, n.Generation) == nil {
		p, status, err := effect(now)
		answer = JobAnswer{Status: status, Total: p.Total, Items: p.Items, Done: p.Done, Open: p.Open}
		if err != nil {
			answer = JobAnswer{Status: jobStatus(err)}
		}
	}
	return answer
}

// jobStatus is the outcome that an error of the book stands for.
func jobStatus(err error) Status {
	switch {
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
