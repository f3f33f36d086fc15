package subjects

import (
	"context"
	"errors"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/calls"
	"facet/router/cluster"
)

// Meta grants a gallery's slots to its shards. A shard gives slots back in two steps:
// it returns them in its own log, and then meta reclaims them:
//
//	meta     granted 40 ──▶ shard 1   granted 40, returned 0
//	         reclaimed 15 ◀──          returned 15        (sent again after a crash)
//
// Both sides keep totals that only grow, so every message may be lost, repeated or
// late. A new event takes the first of these slots:
//   - a free slot of its shard
//   - a free slot of meta
//   - a free slot of another shard
//   - the slot of its shard's oldest deleted entry
//   - the slot of another shard's oldest deleted entry
//
// Without any the gallery is full. The router does not call it full while a shard
// that may have a slot does not answer.
const (
	// grantMax and grantShare bound the slots that a shard gets at once. It gets an
	// equal share of 1/grantShare of the free slots, and at most grantMax.
	grantMax   = 4096
	grantShare = 2
	// grantRounds is the most times that one registration asks for slots. Other
	// registrations may take the slots that were granted for it.
	grantRounds = 32
)

// WithSlot does a write that needs a slot. When the shard has none, it finds one
// and repeats the write. recycle lets the write take the slot of a deleted entry.
// WithSlot sets it only after it has looked for free slots everywhere.
func (r *SubjectRequests) WithSlot(ctx context.Context, g cluster.Gallery, home id.Shard, write func(recycle bool) (RegisterAnswer, error)) (RegisterAnswer, error) {
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
	return RegisterAnswer{}, &router.Error{Kind: router.Busy, Message: "the gallery's last slots are contended; try again", RetryAfter: calls.RetryLater}
}

// findSlots gets slots for home beyond the granted ones: from meta, or else from
// other shards. With recycle it also takes the slots of their deleted entries. It
// reports whether it found any.
func (r *SubjectRequests) findSlots(ctx context.Context, g cluster.Gallery, home id.Shard, granted uint32, recycle bool) (bool, error) {
	got, err := r.grant(ctx, g, home, granted)
	if got || err != nil || len(g.ShardIDs) == 1 {
		return got, err
	}
	var least uint32
	if recycle {
		least = 1
	}
	returned, err := r.collect(ctx, g, home, least)
	if err != nil && !recycle {
		return false, nil //nolint:nilerr // the home shard may recycle; if it can't, the next round returns the error
	}
	if !returned || err != nil {
		return false, err
	}
	// Another registration may take the returned slots first.
	_, err = r.grant(ctx, g, home, granted)
	return true, err
}

// grant asks meta for slots beyond the granted ones and hands them to the shard. It
// reports whether meta had any. It first reads whether meta has free slots, because
// a full gallery must not fill the log with refusals.
func (r *SubjectRequests) grant(ctx context.Context, g cluster.Gallery, home id.Shard, granted uint32) (bool, error) {
	if err := r.cluster.SyncMeta(ctx); err != nil {
		return false, err
	}
	if r.cluster.Groups.Meta().FreeSlots(g.ID) == 0 && r.grantOf(g.ID, home).Total <= granted {
		return false, nil
	}
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.GrantOp, metafsm.Grant{
		Gallery: g.ID, Generation: g.Generation, Shard: home, Have: granted, Want: r.want(g),
	})
	switch {
	case err != nil:
		return false, err
	case a.Status == metafsm.Unsettled:
		// Searches must know of a shard before it gets its first event. The caller tries
		// the write again afterwards, and then calls grant again.
		return true, cluster.SettleList(ctx, r.cluster, g.ID)
	case a.Status != metafsm.Done:
		return false, router.Errorf(router.Forbidden, "", "Forbidden") // the gallery was deleted
	case a.Total <= granted:
		return false, nil
	}
	_, err = calls.CallLeader(ctx, r.cluster.Calls, shardGrant, home, shardfsm.Grant{Gallery: g.ID, Generation: g.Generation, Total: a.Total})
	return err == nil, err
}

// want returns how many slots a shard asks for at once: all of them for the only
// shard, else less and less as the gallery fills.
func (r *SubjectRequests) want(g cluster.Gallery) uint32 {
	n := uint32(len(g.ShardIDs))
	if n == 1 {
		return g.Size
	}
	free := r.cluster.Groups.Meta().FreeSlots(g.ID)
	return min(max(1, free/(grantShare*n)), grantMax)
}

// collect makes the gallery's other shards return slots, one after the other, until
// one has returned some, and lets meta reclaim them. It reports whether one did.
// Each shard returns at least least slots, if necessary those of its oldest deleted
// entries. home returns nothing, but meta may not have reclaimed what it returned
// earlier.
func (r *SubjectRequests) collect(ctx context.Context, g cluster.Gallery, home id.Shard, least uint32) (bool, error) {
	var failed []error
	for _, s := range g.ShardIDs {
		a, err := calls.CallLeader(ctx, r.cluster.Calls, shardReturn, s, returnQuery{
			Gallery: g.ID, Generation: g.Generation, Granted: r.grantOf(g.ID, s).Total, Least: least, Home: s == home,
		})
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if a.Returned <= r.grantOf(g.ID, s).Reclaimed {
			continue
		}
		_, err = cluster.ProposeMeta(ctx, r.cluster, metafsm.ReclaimOp, metafsm.Reclaim{
			Gallery: g.ID, Generation: g.Generation, Shard: s, Returned: a.Returned,
		})
		return err == nil, err
	}
	return false, errors.Join(failed...)
}

// grantOf returns the slots that meta has granted to a shard and reclaimed from it,
// as far as this node knows.
func (r *SubjectRequests) grantOf(g id.Gallery, s id.Shard) metafsm.ShardGrant {
	for _, of := range r.cluster.Groups.Meta().Grants(g) {
		if of.Shard == s {
			return of
		}
	}
	return metafsm.ShardGrant{Shard: s}
}

// returnQuery asks a shard to return half of its free slots, and at least Least.
type returnQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Least      uint32     `cbor:"3,keyasint,omitempty"`
	// Granted is the total that meta has granted to the shard. The shard may not
	// know it yet.
	Granted uint32 `cbor:"4,keyasint,omitempty"`
	// Home asks the shard for its totals only. It is set for the shard that needs
	// the slots.
	Home bool `cbor:"5,keyasint,omitempty"`
}

var shardReturn = calls.NewMethod("shard.return", func(ctx context.Context, r *cluster.Cluster, group id.Shard, q returnQuery) (shardfsm.ReturnSlotsAnswer, error) {
	g, _, err := r.LocalReplica(group)
	if err != nil {
		return shardfsm.ReturnSlotsAnswer{}, err
	}
	m, err := r.LeaderMachine(ctx, group)
	if err != nil {
		return shardfsm.ReturnSlotsAnswer{}, err
	}
	u := m.Shard().Usage(q.Gallery)
	unheard := q.Granted > u.Granted
	if q.Home || !unheard && u.Free() == 0 && (q.Least == 0 || u.Deleted == 0) {
		return shardfsm.ReturnSlotsAnswer{Status: shardfsm.Done, Granted: u.Granted, Returned: u.Returned}, nil
	}
	return cluster.Propose(ctx, g, shardfsm.ReturnSlotsOp, shardfsm.ReturnSlots{
		Gallery: q.Gallery, Generation: q.Generation, Granted: max(q.Granted, u.Granted), Returned: u.Returned,
		Keep: u.Free() / 2, Recycle: q.Least, Time: cluster.OnTime(r.Clock, 0),
	})
})
