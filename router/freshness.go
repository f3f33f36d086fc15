package router

import (
	"context"
	"errors"

	"facet/router/calls"
	"facet/shard"
)

// outdatedMax is the most times that a read catches up with meta because a shard
// knows a later epoch of the gallery.
const outdatedMax = 3

// outdated returns err with kind Outdated if a shard refused an old view of a gallery,
// else err. The gallery was deleted, or lies on more shards by now.
func outdated(err error) error {
	if errors.Is(err, shard.ErrEpoch) || errors.Is(err, shard.ErrGeneration) {
		return Errorf(calls.Outdated, "", "%v", err)
	}
	return err
}

// withFreshShards does a read over all shards of a gallery. When a shard reports
// that the list of shards is old, this node catches up with meta and reads again.
// So the read never misses events on a shard that this node did not know.
func withFreshShards[T any](ctx context.Context, r *cluster, g enrolment, read func(enrolment) (T, error)) (T, error) {
	var err error
	for range outdatedMax {
		var out T
		out, err = read(g)
		if KindOf(err) != calls.Outdated {
			return out, err
		}
		if err := r.sync.Join(ctx); err != nil {
			return out, err
		}
		fresh, ok := r.gallery(g.ID)
		if !ok || fresh.Generation != g.Generation {
			return out, Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
		}
		g = fresh
	}
	var none T
	return none, err
}
