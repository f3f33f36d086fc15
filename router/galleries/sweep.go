package galleries

import (
	"context"
	"errors"
	"fmt"
	"time"

	"facet/internal/id"
	"facet/raftfsm/command"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
)

const (
	// purgeBatch is the most entries of a deleted gallery that one command drops.
	purgeBatch = 1000
	// nameWait is how long a request waits for the name of a deleted gallery: about
	// as long as a client waits. namePause is the pause between two looks.
	nameWait  = 20 * time.Second
	namePause = 10 * time.Millisecond
)

// fence makes all shards of a deleted gallery refuse its former generation. left is
// the number of entries still to be purged.
func (r *GalleryRequests) fence(ctx context.Context, g metafsm.Gallery) (left uint64, err error) {
	answers, err := calls.Scatter(ctx, r.cluster.Calls, ShardFence, cluster.ShardsOf(r.cluster.Groups.Meta(), g), shardfsm.Fence{Gallery: g.ID, Generation: g.Generation})
	for _, a := range answers {
		left += a.Left
	}
	return left, err
}

// deletion names the gallery under deletion that keeps a name from another one.
type deletion struct {
	tenant id.Tenant
	name   string
}

// proposeNamed proposes a command that gives a gallery a name. A gallery under deletion
// keeps its name until its entries are purged, although its client got the answer. So
// proposeNamed purges them, as Sweep does, and proposes again, for up to nameWait.
func proposeNamed[C, A any](ctx context.Context, r *GalleryRequests, op command.Op[C, A], c C, of deletion, status func(A) metafsm.Status) (A, error) {
	for end := time.Now().Add(nameWait); ; {
		a, err := cluster.ProposeMeta(ctx, r.cluster, op, c)
		if err != nil || status(a) != metafsm.BeingDeleted || time.Now().After(end) {
			return a, err
		}
		for _, g := range r.cluster.Groups.Meta().Deleting() {
			if g.Tenant != of.tenant || g.Name != of.name {
				continue
			}
			if err := r.sweep(ctx, g); err != nil {
				return a, err
			}
		}
		if err := cluster.Pause(ctx, namePause); err != nil {
			return a, err
		}
	}
}

// nameInUse returns the answer when a deletion takes longer than nameWait.
func nameInUse() error {
	return &router.Error{Kind: router.Busy, Message: "a gallery with this name is being deleted; try again", RetryAfter: calls.RetryLater}
}

// Sweep continues the deletion of galleries. Every step may be repeated, so it can
// continue where another node stopped. One call does a bounded part of the work.
func (r *GalleryRequests) Sweep(ctx context.Context) error {
	var failed []error
	for _, g := range r.cluster.Groups.Meta().Deleting() {
		if err := r.sweep(ctx, g); err != nil {
			failed = append(failed, fmt.Errorf("purge gallery %s: %w", g.ID, err))
		}
	}
	return errors.Join(failed...)
}

func (r *GalleryRequests) sweep(ctx context.Context, g metafsm.Gallery) error {
	left, err := r.fence(ctx, g)
	if err != nil {
		return err
	}
	if left > 0 {
		_, err := calls.Scatter(ctx, r.cluster.Calls, shardPurge, cluster.ShardsOf(r.cluster.Groups.Meta(), g), shardfsm.Purge{Gallery: g.ID, Generation: g.Generation, Max: purgeBatch})
		return err
	}
	_, err = cluster.ProposeMeta(ctx, r.cluster, metafsm.ForgetGalleryOp, metafsm.ForgetGallery{Gallery: g.ID, Generation: g.Generation})
	return err
}

// ShardFence makes a shard refuse the former generations of a gallery.
var ShardFence = cluster.ShardCommand("shard.fence", shardfsm.FenceOp, nil)

var shardPurge = cluster.ShardCommand("shard.purge", shardfsm.PurgeOp, nil)
