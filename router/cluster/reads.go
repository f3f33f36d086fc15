package cluster

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
)

// ReadBeside returns what read returns of a shard's state, as after ReadAny. If the replica has applied
// all that it has, it is read while the leader proves that it leads.
func ReadBeside[A any](ctx context.Context, r *Cluster, group id.Shard, read func(context.Context, *shard.Shard) (A, error)) (a A, err error) {
	g, s, err := r.LocalReplica(group)
	if err != nil {
		return a, err
	}
	confirm := func() (*shard.Shard, error) { return r.ReadAny(ctx, group) }
	if raftfsm.AppliedAll(g) {
		return beside(ctx, s, g.Applied, confirm, read)
	}
	if s, err = confirm(); err != nil {
		return a, err
	}
	return read(ctx, s)
}

// beside returns what read returns of a confirmed state. It reads s while confirm runs. That counts only if
// the index applied stayed the same: then s was the state that is confirmed. Otherwise that one is read.
func beside[S, A any](
	ctx context.Context, s S, applied func() uint64, confirm func() (S, error), read func(context.Context, S) (A, error),
) (a A, err error) {
	index := applied()
	early, cancel := context.WithCancel(ctx)
	defer cancel()
	var readErr error
	done := make(chan struct{})
	go func() { // ended below
		defer close(done)
		a, readErr = read(early, s)
	}()
	confirmed, err := confirm()
	older := applied() != index
	if err != nil || older {
		cancel()
	}
	<-done
	switch {
	case err != nil:
		return a, err
	case older:
		return read(ctx, confirmed)
	default:
		return a, readErr
	}
}

// MachineRead returns the method that reads the state machine of a shard on its leader.
func MachineRead[Q, A any](name string, read func(*shardfsm.Machine, Q) (A, error)) Method[Q, A] {
	return calls.NewMethod(name, func(ctx context.Context, r *Cluster, group id.Shard, q Q) (a A, err error) {
		m, err := r.LeaderMachine(ctx, group)
		if err != nil {
			return a, err
		}
		a, err = read(m, q)
		return a, Outdated(err)
	})
}

// ShardRead returns the method that reads a shard on its leader.
func ShardRead[Q, A any](name string, read func(*shard.Shard, Q) (A, error)) Method[Q, A] {
	return MachineRead(name, func(m *shardfsm.Machine, q Q) (A, error) { return read(m.Shard(), q) })
}

// ShardReadAny returns the method that reads a shard on any replica.
func ShardReadAny[Q, A any](name string, read func(context.Context, *Cluster, *shard.Shard, Q) (A, error)) Method[Q, A] {
	return calls.NewMethod(name, func(ctx context.Context, r *Cluster, group id.Shard, q Q) (a A, err error) {
		s, err := r.ReadAny(ctx, group)
		if err != nil {
			return a, err
		}
		a, err = read(ctx, r, s, q)
		return a, Outdated(err)
	})
}
