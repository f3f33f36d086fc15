package cluster

import (
	"context"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/router"
	"facet/router/calls"
)

// ConfirmedLookup looks something up in this node's replica of meta. The replica
// first catches up with meta's leader in two cases: it has not done so within
// trustMax, or it does not find the thing. The error is NotFound when the thing
// does not exist.
func ConfirmedLookup[T any](ctx context.Context, r *Cluster, look func() (T, bool)) (T, error) {
	age := r.synced.age()
	if age < trustMax {
		if rec, ok := look(); ok {
			if age >= refreshAfter {
				r.sync.Nudge()
			}
			return rec, nil
		}
	}
	if err := r.sync.Join(ctx); err != nil {
		var none T
		return none, err
	}
	rec, ok := look()
	if !ok {
		return rec, router.Errorf(router.NotFound, "", "there is no such thing")
	}
	return rec, nil
}

// ConfirmedGallery returns a gallery of a generation. there is false if it was deleted.
func ConfirmedGallery(ctx context.Context, r *Cluster, gallery id.Gallery, generation uint32) (g Gallery, there bool, err error) {
	g, err = ConfirmedLookup(ctx, r, func() (Gallery, bool) { return r.Find(gallery) })
	if router.KindOf(err) == router.NotFound {
		return g, false, nil
	}
	return g, err == nil && g.Generation == generation, err
}

// SyncMeta waits until this node's replica of meta has every write that was
// acknowledged before the call. Concurrent callers share the work.
func (r *Cluster) SyncMeta(ctx context.Context) error { return r.sync.Join(ctx) }

// SyncMetaSince is SyncMeta for a caller to whom a round that began after since is
// enough.
func (r *Cluster) SyncMetaSince(ctx context.Context, since time.Time) error {
	if r.synced.age() < time.Since(since) {
		return nil
	}
	return r.sync.Join(ctx)
}

// syncMeta does the work of SyncMeta for one round.
func (r *Cluster) syncMeta(ctx context.Context) error {
	round := r.synced.begin()
	p, err := metaPoint(ctx, r)
	if err != nil {
		return err
	}
	group, ok := r.Groups.Group(id.Meta)
	if !ok {
		return &router.Error{Kind: router.Unavailable, Message: "this node is starting; try again", RetryAfter: calls.RetryLater}
	}
	if err := group.WaitPoint(ctx, p); err != nil {
		return err
	}
	r.synced.last.Store(round)
	return nil
}

// metaPoint returns the read point of meta's leader. A node without a record, which joins, may
// ask for the index alone (Joins).
func metaPoint(ctx context.Context, r *Cluster) (raftfsm.ReadPoint, error) {
	self, err := r.Peers.Self().Node()
	if err == nil {
		if _, recorded := r.Groups.Meta().Node(self); recorded {
			return calls.CallLeader(ctx, r.Calls, GroupPoint, id.Meta, struct{}{})
		}
	}
	index, err := calls.CallLeader(ctx, r.Calls, metaIndex, id.Meta, struct{}{})
	return raftfsm.ReadPoint{Index: index}, err
}

// WaitKnown waits until every node answers by the change of a gallery that is committed: a node trusts
// its replica of meta for trustMax without a new round.
func WaitKnown(ctx context.Context) error { return Pause(ctx, trustMax) }

// Pause waits for d. It returns ctx's error if ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
