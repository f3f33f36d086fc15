package router

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
)

// A gallery's slots are granted by meta to its shards, and come back to meta when
// a shard has returned them in its own log:
//
//	meta     granted 40 ──▶ shard 1   granted 40, returned 0
//	         reclaimed 15 ◀──          returned 15        (told again after a crash)
//
// Both sides keep totals that only grow, so every message may be lost, repeated or
// late. A new event takes a free slot of its shard, else one that meta has, else
// one that another shard has free, else that of its shard's oldest deleted entry,
// else that of another shard's. Only then is the gallery full; while a shard that
// might have a slot can't be asked, nobody says so.
const (
	// grantMax and grantShare bound how many slots a shard is granted at once: a
	// share of what is free for each of the gallery's shards.
	grantMax   = 4096
	grantShare = 2
	// grantRounds bounds how often one registration asks for slots: others may
	// take what it was granted.
	grantRounds = 32
)

// slotted does a write that needs a slot, and finds one when its shard has none.
// write gets leave to recycle a deleted entry's slot only after free slots were
// looked for everywhere.
func (r *subjectRequests) slotted(ctx context.Context, g enrolment, home id.Shard, write func(recycle bool) (registerAnswer, error)) (registerAnswer, error) {
	recycle := false
	for range grantRounds {
		a, err := write(recycle)
		if err != nil || a.Status != shardfsm.NeedSlots {
			return a, err
		}
		found, err := r.findSlots(ctx, g, home, a.Granted, recycle)
		if err != nil {
			return a, err
		}
		if !found && recycle {
			return a, nil
		}
		recycle = recycle || !found
	}
	return registerAnswer{}, &Error{Kind: Busy, Message: "the gallery's last slots are contended; try again", RetryAfter: calls.RetryLater}
}

// findSlots gets slots for home beyond the granted ones: from meta, else from
// other shards, from their deleted entries too if recycle is set. It tells whether
// there were any.
func (r *subjectRequests) findSlots(ctx context.Context, g enrolment, home id.Shard, granted uint32, recycle bool) (bool, error) {
	got, err := r.grant(ctx, g, home, granted)
	if got || err != nil || len(g.shards) == 1 {
		return got, err
	}
	var least uint32
	if recycle {
		least = 1
	}
	returned, err := r.collect(ctx, g, home, least)
	if err != nil && !recycle {
		return false, nil //nolint:nilerr // the own shard may recycle; if not, it is asked again and then told
	}
	if !returned || err != nil {
		return false, err
	}
	// Others may be quicker: what was returned is there for whoever asks first.
	_, err = r.grant(ctx, g, home, granted)
	return true, err
}

// grant asks meta for slots beyond the granted ones and hands them to the shard; it
// tells whether meta had any. That there are none is read, not proposed: a full
// gallery must not fill the log with refusals.
func (r *subjectRequests) grant(ctx context.Context, g enrolment, home id.Shard, granted uint32) (bool, error) {
	if err := r.sync.Join(ctx); err != nil {
		return false, err
	}
	if r.groups.Meta().FreeSlots(g.ID) == 0 && r.grantOf(g.ID, home).Total <= granted {
		return false, nil
	}
	a, err := proposeMeta(ctx, r.cluster, metafsm.GrantOp, metafsm.Grant{
		Gallery: g.ID, Generation: g.Generation, Shard: home, Have: granted, Want: r.want(g),
	})
	switch {
	case err != nil:
		return false, err
	case a.Status == metafsm.Unsettled:
		// Whoever searches must know of a shard before it holds the first event. The
		// write is tried again then, and asks again.
		return true, r.settle(ctx, g)
	case a.Status != metafsm.Done:
		return false, Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
	case a.Total <= granted:
		return false, nil
	}
	_, err = calls.Ask(ctx, r.calls, shardGrant, home, shardfsm.Grant{Gallery: g.ID, Generation: g.Generation, Total: a.Total})
	return err == nil, err
}

// want is how many slots a shard asks for at once: all for the only shard, else
// less and less as the gallery fills.
func (r *subjectRequests) want(g enrolment) uint32 {
	n := uint32(len(g.shards))
	if n == 1 {
		return g.Size
	}
	free := r.groups.Meta().FreeSlots(g.ID)
	return min(max(1, free/(grantShare*n)), grantMax)
}

// collect has the gallery's other shards return slots and meta reclaim them, until
// one had some; it tells whether one had. least is how many a shard returns at the
// least, those of its oldest deleted entries included. home returns nothing, but
// what it returned earlier may not have been reclaimed.
func (r *subjectRequests) collect(ctx context.Context, g enrolment, home id.Shard, least uint32) (bool, error) {
	var failed []error
	for _, s := range g.shards {
		a, err := calls.Ask(ctx, r.calls, shardReturn, s, returnQuery{
			Gallery: g.ID, Generation: g.Generation, Granted: r.grantOf(g.ID, s).Total, Least: least, Home: s == home,
		})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if mutant.ReclaimEarly {
			a.Returned++
		}
		if a.Returned <= r.grantOf(g.ID, s).Reclaimed {
			continue
		}
		_, err = proposeMeta(ctx, r.cluster, metafsm.ReclaimOp, metafsm.Reclaim{
			Gallery: g.ID, Generation: g.Generation, Shard: s, Returned: a.Returned,
		})
		return err == nil, err
	}
	return false, errors.Join(failed...)
}

// grantOf is what meta has granted to a shard and reclaimed, as far as this node
// knows.
func (r *subjectRequests) grantOf(g id.Gallery, s id.Shard) metafsm.ShardGrant {
	for _, of := range r.groups.Meta().Grants(g) {
		if of.Shard == s {
			return of
		}
	}
	return metafsm.ShardGrant{Shard: s}
}

// settle tells the gallery's first shard, which every search asks, of which epoch
// the list of its shards is, and then meta that it knows.
func (r *subjectRequests) settle(ctx context.Context, old enrolment) error {
	g, ok := r.gallery(old.ID) // caught up by grant
	if !ok {
		return Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
	}
	a, err := calls.Ask(ctx, r.calls, shardWiden, g.shards[0], shardfsm.Widen{Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch})
	if err != nil {
		return err
	}
	if a.Status != shardfsm.Done {
		return Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
	}
	_, err = proposeMeta(ctx, r.cluster, metafsm.SettleOp, metafsm.Settle{Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch})
	return err
}

// returnQuery asks a shard to return half of its free slots, and at least Least.
type returnQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Least      uint32     `cbor:"3,keyasint,omitempty"`
	// Granted is what meta has granted to the shard in all. The shard may not have
	// heard of it.
	Granted uint32 `cbor:"4,keyasint,omitempty"`
	// Home asks for the totals only: the shard is the one that needs slots.
	Home bool `cbor:"5,keyasint,omitempty"`
}

var shardReturn = method[returnQuery, shardfsm.ReturnSlotsAnswer]{Name: "shard.return", Run: func(ctx context.Context, r *Router, group id.Shard, q returnQuery) (shardfsm.ReturnSlotsAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.ReturnSlotsAnswer{}, err
	}
	s, err := r.read(ctx, group)
	if err != nil {
		return shardfsm.ReturnSlotsAnswer{}, err
	}
	u := s.Slots().Usage(q.Gallery)
	unheard := q.Granted > u.Granted
	if q.Home || !unheard && u.Free() == 0 && (q.Least == 0 || u.Deleted == 0) {
		return shardfsm.ReturnSlotsAnswer{Status: shardfsm.Done, Granted: u.Granted, Returned: u.Returned}, nil
	}
	return propose(ctx, g, shardfsm.ReturnSlotsOp, shardfsm.ReturnSlots{
		Gallery: q.Gallery, Generation: q.Generation, Granted: max(q.Granted, u.Granted), Returned: u.Returned,
		Keep: u.Free() / 2, Recycle: q.Least, Time: onTime(0),
	})
}}

var shardWiden = method[shardfsm.Widen, shardfsm.StatusAnswer]{Name: "shard.widen", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Widen) (shardfsm.StatusAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.StatusAnswer{}, err
	}
	return propose(ctx, g, shardfsm.WidenOp, c)
}}
