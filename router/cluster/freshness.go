package cluster

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/shard"
)

// outdatedMax is the most times that a read catches up with meta because a shard
// knows a later epoch of the gallery.
const outdatedMax = 3

// Outdated returns err with kind Outdated if a shard refused an old view of a gallery,
// else err. The gallery was deleted, or lies on more shards by now.
func Outdated(err error) error {
	if errors.Is(err, shard.ErrEpoch) || errors.Is(err, shard.ErrGeneration) {
		return router.Errorf(calls.Outdated, "", "%v", err)
	}
	return err
}

// WithFreshShards does a read over all shards of a gallery. When a shard reports
// that the list of shards is old, this node catches up with meta and reads again.
// So the read never misses events on a shard that this node did not know.
func WithFreshShards[T any](ctx context.Context, r *Cluster, g Gallery, read func(Gallery) (T, error)) (T, error) {
	var err error
	for range outdatedMax {
		var out T
		out, err = read(g)
		if router.KindOf(err) != calls.Outdated {
			return out, err
		}
		if err := r.sync.Join(ctx); err != nil {
			return out, err
		}
		fresh, ok := r.Find(g.ID)
		if !ok || fresh.Generation != g.Generation {
			return out, router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
		}
		g = fresh
	}
	var none T
	return none, err
}

// WidenedMachine is LeaderMachine for a shard that may know only earlier epochs of the gallery. It then first
// tells the shard to.Epoch.
func WidenedMachine(ctx context.Context, r *Cluster, group id.Shard, to shardfsm.Widen) (*shardfsm.Machine, error) {
	m, err := r.LeaderMachine(ctx, group)
	if err == nil && m.Shard().Epoch(to.Gallery) < to.Epoch {
		_, err = shardWiden.Run(ctx, r, group, to)
	}
	return m, err
}

// SettleList sends the epoch of the list of shards, as this node knows it, to the gallery's
// first shard, which every search asks. Then it tells meta that this shard knows the epoch.
func SettleList(ctx context.Context, r *Cluster, gallery id.Gallery) error {
	g, ok := r.Find(gallery)
	if !ok {
		return router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
	}
	a, err := calls.CallLeader(ctx, r.Calls, shardWiden, g.ShardIDs[0], shardfsm.Widen{Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch})
	if err != nil {
		return err
	}
	if a.Status != shardfsm.Done {
		return router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
	}
	_, err = ProposeMeta(ctx, r, metafsm.SettleOp, metafsm.Settle{Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch})
	return err
}

var shardWiden = ShardCommand("shard.widen", shardfsm.WidenOp, nil)
