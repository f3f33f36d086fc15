package cluster

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
	"facet/router"
	"facet/router/calls"
	"facet/shard"
)

// pointWait is the longest time that a replica waits for the leader's read point
// and for its own log to reach it. After that the leader itself is asked.
const pointWait = 250 * time.Millisecond

// errBehind is returned when a replica does not get the leader's read point, or
// does not reach it, in time.
var errBehind = &router.Error{Kind: router.Unavailable, Message: "a replica is behind; try again", RetryAfter: calls.RetryLater}

// ReadAny returns the state of a shard, on any replica, when it has every write that was acknowledged before
// the call.
func (r *Cluster) ReadAny(ctx context.Context, group id.Shard) (*shard.Shard, error) {
	g, s, err := r.LocalReplica(group)
	if err != nil {
		return nil, err
	}
	if leader, known := g.Leader(); !known || leader == r.Peers.Self() {
		m, err := r.LeaderMachine(ctx, group) // it fails unless this replica leads
		if err != nil {
			return nil, err
		}
		return m.Shard(), nil
	}
	ctx, running := trace.Start(ctx, trace.Stage{Name: trace.CatchUp, Group: group})
	err = r.follow(group).Join(ctx)
	running.End(err)
	return s, err
}

// follow returns the rounds in which this node's replica of a group catches up with
// its leader.
func (r *Cluster) follow(group id.Shard) *Rounds {
	r.followMu.Lock()
	defer r.followMu.Unlock()
	f := r.follows[group]
	if f == nil {
		f = &Rounds{Run: func(ctx context.Context) error {
			wait, cancel := context.WithTimeout(ctx, pointWait)
			defer cancel()
			err := r.catchUp(wait, group)
			if err != nil && wait.Err() != nil && ctx.Err() == nil {
				return errBehind
			}
			return err
		}}
		r.follows[group] = f
	}
	return f
}

// catchUp waits until this node's replica of a group has applied everything that
// its leader had committed at the call.
func (r *Cluster) catchUp(ctx context.Context, group id.Shard) error {
	g, ok := r.Groups.Group(group)
	if !ok {
		return &raftfsm.NotLeaderError{}
	}
	leader, known := g.Leader()
	if !known || leader == r.Peers.Self() {
		return &raftfsm.NotLeaderError{}
	}
	if p, ok := raftfsm.AskLeader(ctx, g); ok {
		return g.WaitPoint(ctx, p)
	}
	p, err := calls.CallMember(ctx, r.Calls, GroupPoint, group, leader, struct{}{})
	if err != nil {
		return err
	}
	return g.WaitPoint(ctx, p)
}

// GroupPoint returns the leader's read point. Another replica that has applied it
// may answer a read.
var GroupPoint = calls.NewMethod("group.point", func(ctx context.Context, r *Cluster, group id.Shard, _ struct{}) (raftfsm.ReadPoint, error) {
	g, err := localGroup(r, group)
	if err != nil {
		return raftfsm.ReadPoint{}, err
	}
	return g.ReadPoint(ctx)
})

// CatchUp waits until this node's replica of a shard has applied everything that
// its leader had committed at the call, or until ctx ends.
func (r *Cluster) CatchUp(ctx context.Context, group id.Shard) error {
	if g, here := r.Groups.Group(group); here && g.IsLeader() {
		index, err := g.ReadIndex(ctx)
		if err == nil {
			err = g.WaitApplied(ctx, index)
		}
		return err
	}
	return r.catchUp(ctx, group)
}
