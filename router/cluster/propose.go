package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/calls"
)

// Stamped returns w in the form that commands contain, with this node's time.
func Stamped(w router.Write) metafsm.Write {
	return metafsm.Write{Op: w.Operation, Request: w.Request, Keyed: w.Keyed, Time: time.Now().UnixMilli()}
}

// ProposeMeta commits a command in meta and returns its answer.
func ProposeMeta[C, A any](ctx context.Context, r *Cluster, op command.Op[C, A], c C) (A, error) {
	var none A
	raw, err := calls.CallLeader(ctx, r.Calls, metaPropose, id.Meta, op.Encode(c))
	if err != nil {
		return none, err
	}
	r.synced.writes.Add(1)
	a, err := op.Answer(raw)
	if err != nil {
		return none, fmt.Errorf("read meta's answer: %w", err)
	}
	return a, nil
}

// OwnWrite returns a Write with a new operation. A retry within this call finds the
// operation's outcome. A second request of the client is a second operation.
func OwnWrite() metafsm.Write {
	var w router.Write
	MustRandom(w.Operation[:])
	return Stamped(w)
}

// metaPropose commits an encoded command in meta and returns the encoded answer.
var metaPropose = calls.NewMethod("meta.propose", func(ctx context.Context, r *Cluster, group id.Shard, cmd []byte) ([]byte, error) {
	g, err := localGroup(r, group)
	if err != nil {
		return nil, err
	}
	a, err := g.Propose(ctx, cmd)
	if errors.Is(err, raftfsm.ErrBusy) {
		return nil, tooManyWrites()
	}
	return a, err
})

// ShardCommand returns the method that proposes op on this node's replica of a shard.
// stamp, where not nil, returns the place of the command's time, which this node's clock corrects.
func ShardCommand[C, A any](name string, op command.Op[C, A], stamp func(*C) *int64) Method[C, A] {
	return calls.NewMethod(name, func(ctx context.Context, r *Cluster, group id.Shard, c C) (A, error) {
		g, _, err := r.LocalReplica(group)
		if err != nil {
			var none A
			return none, err
		}
		if stamp != nil {
			at := stamp(&c)
			*at = OnTime(r.Clock, *at)
		}
		return Propose(ctx, g, op, c)
	})
}

// Propose commits a command and returns the answer of the state machine.
func Propose[C, A any](ctx context.Context, g *raftfsm.Group, op command.Op[C, A], c C) (A, error) {
	var none A
	raw, err := g.Propose(ctx, op.Encode(c))
	if errors.Is(err, raftfsm.ErrTooLarge) {
		return none, router.Errorf(router.InvalidRequest, "", "the request is too large to be stored")
	}
	if errors.Is(err, raftfsm.ErrBusy) {
		return none, tooManyWrites()
	}
	if err != nil {
		return none, err
	}
	a, err := op.Answer(raw)
	if err != nil {
		return none, fmt.Errorf("read the state machine's answer: %w", err)
	}
	return a, nil
}

func tooManyWrites() error {
	return &router.Error{Kind: router.Busy, Message: "too many writes are in progress; try again", RetryAfter: calls.RetryBusy}
}

// clockSkewMax is the largest accepted difference between a proposed time and the
// leader's own.
const clockSkewMax = 5 * time.Second

// OnTime returns a proposed time, or this node's time when the two differ by more
// than clockSkewMax. One wrong clock must not change the times of a shard, so the time
// of this node is that of most nodes.
func OnTime(clock router.Clock, proposed int64) int64 {
	now := clock.Now()
	if off := now.Sub(time.UnixMilli(proposed)).Abs(); off > clockSkewMax {
		return now.UnixMilli()
	}
	return proposed
}
