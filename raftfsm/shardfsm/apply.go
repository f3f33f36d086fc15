package shardfsm

import (
	"errors"
	"slices"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/operation"
	"facet/shard"
)

// place is a generation of a gallery.
type place struct {
	gallery    id.Gallery
	generation uint32
}

// advance moves the clock to a command's time, takes away what is pending for too
// long by it, and gives the clock.
func (m *Machine) advance(time int64) int64 {
	if mutant.ClockInFSM {
		time += mutant.Clock()
	}
	now := m.ops.Advance(time)
	if mutant.ClockBack {
		now = time
	}
	m.shard.Expire(now - PendingMillis)
	return now
}

// once returns the outcome of an operation of one of these codes that was done before
// (Replayed), or the status that refuses it now, or 0 if it is to be done.
func (m *Machine) once(at place, name operation.Name, codes ...byte) (operation.Outcome, Status) {
	if err := m.shard.Check(at.gallery, at.generation); err != nil {
		return operation.Outcome{}, statusOf(err)
	}
	done, ok := m.ops.Recall(name.Op)
	known := slices.Contains(codes, done.Kind)
	switch {
	case mutant.OpsForgotten:
		return done, 0
	case ok && known && done.Scope == at.gallery.UUID && (done.Name.Request == name.Request || mutant.RequestIgnored):
		return done, Replayed
	case ok:
		return done, Conflict
	case m.ops.Full(name):
		return done, OpsFull
	default:
		return done, 0
	}
}

func (m *Machine) remember(g id.Gallery, name operation.Name, code byte, ids ...[16]byte) {
	o := operation.Outcome{Name: name, Kind: code, Scope: g.UUID}
	copy(o.IDs[:], ids)
	m.ops.Remember(o)
}

func (c Grant) apply(m *Machine) GrantAnswer {
	if mutant.GrantAdds {
		c.Total += m.shard.Usage(c.Gallery).Granted
	}
	answer := GrantAnswer{Status: statusOf(m.shard.Grant(shard.Grant(c)))}
	return answer
}

func (c ReturnSlots) apply(m *Machine) ReturnSlotsAnswer {
	m.advance(c.Time)
	u, err := m.shard.Return(shard.Return{
		Gallery: c.Gallery, Generation: c.Generation, Granted: c.Granted, Returned: c.Returned,
		Keep: c.Keep, Least: c.Recycle,
	})
	return ReturnSlotsAnswer{
		Status: statusOf(err), Granted: u.Granted, Returned: u.Returned,
		Deleted: u.Deleted, Active: u.Active, Pending: u.Pending,
	}
}

func (c Fence) apply(m *Machine) FenceAnswer {
	if mutant.FenceOpen {
		return FenceAnswer{Status: Done}
	}
	left := m.shard.Fence(c.Gallery, c.Generation)
	m.jobs.Fence(c.Gallery, c.Generation)
	return FenceAnswer{Done, uint64(left)}
}

func (c Purge) apply(m *Machine) FenceAnswer {
	left, err := m.shard.Purge(c.Gallery, c.Generation, int(c.Max))
	return FenceAnswer{statusOf(err), uint64(left)}
}

func (c Widen) apply(m *Machine) WidenAnswer {
	err := m.shard.Widen(c.Gallery, c.Generation, c.Epoch)
	return WidenAnswer{statusOf(err)}
}

// statuses are the outcomes that errors of the shard stand for.
var statuses = []struct {
	err    error
	status Status
}{
	{shard.ErrGeneration, StaleGeneration},
	{shard.ErrNoSlot, NeedSlots},
	{shard.ErrExists, Conflict},
	{shard.ErrSubject, UnknownSubject},
	{shard.ErrEvent, UnknownEvent},
	{shard.ErrMoved, Moved},
	{shard.ErrFence, NotFenced},
	{shard.ErrActive, Activated},
}

// statusOf is the outcome that an error of the shard stands for.
func statusOf(err error) Status {
	if err == nil {
		return Done
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			return s.status
		}
	}
	panic("bug: a write fails in an unknown way: " + err.Error())
}
