package routing

import (
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router/calls"
	"facet/shard/merging"
)

const (
	searchQuick = 3 * time.Second
)

// settled reads all shards of a gallery by read. The shards are read at different moments, perhaps
// the target's of a merge before the copies and the source's after its removal. So settled reads
// them again if it took long and a merge has ended meanwhile.
func settled[T any](ctx context.Context, r *cluster, g enrolment, read func(enrolment) ([]T, error)) ([]T, error) {
	var before []merging.Removals
	for {
		began := time.Now()
		lists, err := withFreshShards(ctx, r, g, read)
		if err != nil || time.Since(began) < searchQuick {
			return lists, err
		}
		ended, err := withFreshShards(ctx, r, g, func(g enrolment) ([]merging.Removals, error) {
			return calls.ScatterAny(ctx, r.calls, shardMerged, g.shards, g.ID)
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
var shardMerged = calls.NewMethod("shard.merged", func(ctx context.Context, r *cluster, group id.Shard, g id.Gallery) (merging.Removals, error) {
	if _, err := r.readAny(ctx, group); err != nil {
		return merging.Removals{}, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return merging.Removals{}, &raftfsm.NotLeaderError{}
	}
	return m.Merges().Removals(g), nil
})
