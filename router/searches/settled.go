package searches

import (
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/shard/merging"
)

// searchQuick is the longest time between a search's readings of two shards with which it can't have seen
// the target of a merge before the copies and the source after the removal.
const searchQuick = 3 * time.Second

// Settled reads all shards of a gallery by read. The shards are read at different moments, perhaps
// the target's of a merge before the copies and the source's after its removal. So Settled reads
// them again if it took long and a merge has ended meanwhile.
func Settled[T any](ctx context.Context, r *cluster.Cluster, g cluster.Gallery, read func(cluster.Gallery) ([]T, error)) ([]T, error) {
	var before []merging.Removals
	for {
		began := time.Now()
		lists, err := cluster.WithFreshShards(ctx, r, g, read)
		if err != nil || time.Since(began) < searchQuick {
			return lists, err
		}
		ended, err := cluster.WithFreshShards(ctx, r, g, func(g cluster.Gallery) ([]merging.Removals, error) {
			return calls.ScatterAny(ctx, r.Calls, shardMerged, g.ShardIDs, g.ID)
		})
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(ended, func(e merging.Removals) bool { return e.Count > 0 }) || slices.Equal(ended, before) {
			return lists, nil
		}
		before = ended
	}
}

// shardMerged returns which subjects of the gallery were merged into others last.
var shardMerged = calls.NewMethod("shard.merged", func(ctx context.Context, r *cluster.Cluster, group id.Shard, g id.Gallery) (merging.Removals, error) {
	if _, err := r.ReadAny(ctx, group); err != nil {
		return merging.Removals{}, err
	}
	m, ok := r.Groups.Shard(group)
	if !ok {
		return merging.Removals{}, &raftfsm.NotLeaderError{}
	}
	return m.Merges().Removals(g), nil
})
