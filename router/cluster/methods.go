package cluster

import (
	"context"

	"facet/internal/id"
	"facet/internal/trace"
	"facet/raftfsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/shard"
)

// localGroup returns this node's replica of group, whether or not it leads.
func localGroup(r *Cluster, group id.Shard) (*raftfsm.Group, error) {
	if g, ok := r.Groups.Group(group); ok {
		return g, nil
	}
	return nil, &raftfsm.NotLeaderError{}
}

// LedShard returns this node's replica of a shard and its state machine. ok is false unless
// this node leads the shard.
func LedShard(groups router.Groups, s id.Shard) (g *raftfsm.Group, m *shardfsm.Machine, ok bool) {
	g, ok = groups.Group(s)
	m, here := groups.Shard(s)
	return g, m, ok && here && g.IsLeader()
}

// LocalReplica returns this node's replica of a shard, whether or not it leads.
func (r *Cluster) LocalReplica(group id.Shard) (*raftfsm.Group, *shard.Shard, error) {
	g, ok := r.Groups.Group(group)
	m, here := r.Groups.Shard(group)
	if !ok || !here {
		return nil, nil, &raftfsm.NotLeaderError{}
	}
	return g, m.Shard(), nil
}

// LeaderMachine returns the state machine of a shard when it has every write that was
// acknowledged before the call. Only the leader can confirm that.
func (r *Cluster) LeaderMachine(ctx context.Context, group id.Shard) (*shardfsm.Machine, error) {
	g, ok := r.Groups.Group(group)
	m, here := r.Groups.Shard(group)
	if !ok || !here {
		return nil, &raftfsm.NotLeaderError{}
	}
	_, running := trace.Start(ctx, trace.Stage{Name: trace.Proof, Group: group})
	index, err := g.ReadIndex(ctx)
	if err == nil {
		err = g.WaitApplied(ctx, index)
	}
	running.End(err)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// metaIndex returns a log index of meta. A replica that has applied it has every
// write that was acknowledged before the call.
var metaIndex = calls.NewMethod("meta.index", func(ctx context.Context, r *Cluster, group id.Shard, _ struct{}) (uint64, error) {
	g, err := localGroup(r, group)
	if err != nil {
		return 0, err
	}
	return g.ReadIndex(ctx)
})

// Method is a method between nodes that needs no state but a Cluster.
type Method[Q, A any] = calls.Method[*Cluster, Q, A]
