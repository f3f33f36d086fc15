package router

import (
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

// PutBack carries out a write again that members of a shard have lost
// (docs/operations.md, FacetHistoryRewritten). cmd is the command from the log of a member
// that still has it. Ids and face stay, the time becomes the present. A registration gets a
// slot as a new one does. It counts against no quota. The status is as of the command; a write that is there already
// is Replayed or Conflict. NotFound: the gallery was deleted.
func (r *subjectRequests) PutBack(ctx context.Context, at id.Shard, cmd []byte) (shardfsm.Status, error) {
	if err := r.sync.Join(ctx); err != nil {
		return 0, err
	}
	if c, err := shardfsm.RegisterOp.Decode(cmd); err == nil {
		return r.putBackEvent(ctx, at, c, func(c shardfsm.Register) (registerAnswer, error) {
			return calls.CallLeader(ctx, r.calls, shardRegister, at, c)
		})
	}
	if c, err := shardfsm.AddEventOp.Decode(cmd); err == nil {
		return r.putBackEvent(ctx, at, shardfsm.Register(c), func(c shardfsm.Register) (registerAnswer, error) {
			return calls.CallLeader(ctx, r.calls, shardAdd, at, shardfsm.AddEvent(c))
		})
	}
	if c, err := shardfsm.ReplaceEventOp.Decode(cmd); err == nil {
		c.Share = shardfsm.Share{}
		a, err := calls.CallLeader(ctx, r.calls, shardReplace, at, c)
		return a.Status, err
	}
	if c, err := shardfsm.RemoveEventOp.Decode(cmd); err == nil {
		c.Share = shardfsm.Share{}
		a, err := calls.CallLeader(ctx, r.calls, shardRemove, at, c)
		return a.Status, err
	}
	c, err := shardfsm.UnregisterOp.Decode(cmd)
	if err != nil {
		return 0, Errorf(InvalidRequest, "", "the command is no write of a subject")
	}
	c.Share = shardfsm.Share{}
	a, err := calls.CallLeader(ctx, r.calls, shardUnregister, at, c)
	return a.Status, err
}

// putBackEvent adds an event again. It is not pending: its own enrolment has searched for
// the person. The subject stays on its shard, whatever the gallery's epoch is now.
func (r *subjectRequests) putBackEvent(ctx context.Context, at id.Shard, c shardfsm.Register, write func(shardfsm.Register) (registerAnswer, error)) (shardfsm.Status, error) {
	g, ok := r.gallery(c.Gallery)
	if !ok || !g.holds(at) || g.Generation != c.Generation {
		return 0, Errorf(NotFound, "", "the gallery was deleted")
	}
	c.Pending, c.Epoch, c.Share = false, 0, shardfsm.Share{}
	a, err := r.withSlot(ctx, g, at, func(recycle bool) (registerAnswer, error) {
		c.Recycle = recycle
		return write(c)
	})
	return a.Status, err
}
