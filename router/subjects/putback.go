package subjects

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/claims"
	"facet/router/cluster"
	"facet/shard"
)

// PutBack carries out a write again that members of a shard have lost
// (docs/operations.md, FacetHistoryRewritten). cmd is the command from the log of a member
// that still has it. Ids and face stay, the time becomes the present. A registration gets a
// slot as a new one does. It counts against no quota. The status is as of the command; a write that is there already
// is Replayed or Conflict. NotFound: the gallery was deleted.
func (r *SubjectRequests) PutBack(ctx context.Context, at id.Shard, cmd []byte) (shardfsm.Status, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return 0, err
	}
	if c, err := shardfsm.RegisterOp.Decode(cmd); err == nil {
		return r.putBackEvent(ctx, at, c, func(c shardfsm.Register) (RegisterAnswer, error) {
			return calls.CallLeader(ctx, r.cluster.Calls, shardRegister, at, c)
		})
	}
	if c, err := shardfsm.AddEventOp.Decode(cmd); err == nil {
		return r.putBackEvent(ctx, at, c.Register, func(c shardfsm.Register) (RegisterAnswer, error) {
			return calls.CallLeader(ctx, r.cluster.Calls, ShardAdd, at, shardfsm.AddEvent{Register: c})
		})
	}
	if c, err := shardfsm.ReplaceEventOp.Decode(cmd); err == nil {
		c.Share = shardfsm.Share{}
		return r.putBackFace(ctx, at, c)
	}
	if c, err := shardfsm.RemoveEventOp.Decode(cmd); err == nil {
		g, ok := r.cluster.Find(c.Gallery)
		if !ok || g.Generation != c.Generation {
			return 0, errGone
		}
		c.Share, c.Heir = shardfsm.Share{}, shardfsm.Heir{}
		a, err := r.RemoveEvent(ctx, g, c)
		return a.Status, err
	}
	c, err := shardfsm.UnregisterOp.Decode(cmd)
	if err != nil {
		return 0, router.Errorf(router.InvalidRequest, "", "the command is no write of a subject")
	}
	c.Share = shardfsm.Share{}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, shardUnregister, at, c)
	return a.Status, err
}

// putBackEvent adds an event again. It is not pending: its own enrolment has searched for
// the person. The subject stays on its shard, whatever the gallery's epoch is now.
func (r *SubjectRequests) putBackEvent(ctx context.Context, at id.Shard, c shardfsm.Register, write func(shardfsm.Register) (RegisterAnswer, error)) (shardfsm.Status, error) {
	g, ok := r.cluster.Find(c.Gallery)
	if !ok || !g.Holds(at) || g.Generation != c.Generation {
		return 0, errGone
	}
	var err error
	if c.Note, c.Claimed, err = r.claimBack(ctx, g, c.EventWrite, c.Note); err != nil {
		return 0, err
	}
	c.Pending, c.Epoch, c.Share = false, 0, shardfsm.Share{}
	a, err := r.WithSlot(ctx, g, at, func(recycle bool) (RegisterAnswer, error) {
		c.Recycle = recycle
		return write(c)
	})
	return a.Status, err
}

// errGone is returned for a write of a gallery that was deleted.
var errGone = router.Errorf(router.NotFound, "", "the gallery was deleted")

// putBackFace replaces a face again. Its note stays if the subject can still have it.
func (r *SubjectRequests) putBackFace(ctx context.Context, at id.Shard, c shardfsm.ReplaceEvent) (shardfsm.Status, error) {
	g, ok := r.cluster.Find(c.Gallery)
	if !ok || g.Generation != c.Generation {
		return 0, errGone
	}
	var err error
	if c.Note, c.Claimed, err = r.claimBack(ctx, g, c.EventWrite, c.Note); err != nil {
		return 0, err
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, shardReplace, at, c)
	return a.Status, err
}

// claimBack claims the external id of a note that is put back. If another subject has the id by
// now, the write comes back without a note.
func (r *SubjectRequests) claimBack(ctx context.Context, g cluster.Gallery, w shardfsm.EventWrite, note []byte) ([]byte, uint64, error) {
	n := claims.Named{Gallery: g, Name: shard.ExternalOf(note)}
	if n.Name.IsZero() {
		return note, 0, nil
	}
	claimed, holder, err := r.claims.Claim(ctx, n, w.Subject, w.Op)
	if !holder.IsZero() {
		return nil, 0, nil
	}
	return note, claimed, err
}
