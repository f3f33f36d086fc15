// Package claims finds the subject of an external id. It makes the claims of subjects to external
// ids, gives them up, and repairs them.
package claims

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/shard"
	"facet/shard/claim"
)

// An external id has two places: its home shard, which follows from its name, has the claim of a
// subject, and the subject's shard has the id itself, in the subject's note. A subject claims the id
// before it gets the note, and gives the claim up after the note has gone.
//
//	register s   read the bars at s ── claim for s at the home ── note at s, with the bars
//	taken by t   t has the note: Duplicate. It has not: wait, bar t, look again, take the claim
//	refuse s     s remembers that the operation was refused, for its other tries
//	give up      read the claim ── bar s ── s has no such note ── remove the claim, if it is the same
//
// The bar makes the wait safe without clocks: after it, no write of t whose claim is older gives t the
// note (shardfsm.Bar). A claim of t that is newer than the bar changes the turn of the claim, so that
// it is neither taken nor removed (claim.Holder). What a crash leaves is a claim without a note, which
// the next who wants the id takes, and which ScrubClaims removes.
const (
	// claimWait is how long a registration waits for the holder of a claim to get its note.
	// The pause between two looks grows from claimPauseMin to claimPauseMax.
	claimWait     = 2 * time.Second
	claimPauseMin = 20 * time.Millisecond
	claimPauseMax = 250 * time.Millisecond
	// findRounds is the most times that the subject of an external id is looked up again,
	// because the id gets another subject meanwhile.
	findRounds = 8
	// claimedNever is the Claimed of a write that gets its first answer again, and has no
	// effect if that is forgotten meanwhile.
	claimedNever = math.MaxUint64
)

// ClaimRequests finds, makes and gives up the claims of subjects to external ids.
type ClaimRequests struct{ *cluster.Cluster }

// Named is the name of an external id in a gallery.
type Named struct {
	Gallery cluster.Gallery
	Name    shard.ExternalName
}

// homeOf returns the home shard of a name. It depends on nothing that changes.
func (r *ClaimRequests) homeOf(name shard.ExternalName) id.Shard {
	record, _ := r.Groups.Meta().Cluster()
	return homeAmong(name, record.Shards)
}

func homeAmong(name shard.ExternalName, shards int) id.Shard {
	return id.Shard(metafsm.Jump(binary.BigEndian.Uint64(name[:8]), shards) + 1)
}

// ClaimFor is Claim for a write. If another subject has the external id, the error is Duplicate, and the
// operation has no effect any more, by no try that may still be under way.
func (r *ClaimRequests) ClaimFor(ctx context.Context, n Named, w shardfsm.EventWrite) (claimed uint64, err error) {
	claimed, holder, err := r.Claim(ctx, n, w.Subject, w.Op)
	if err != nil || holder.IsZero() {
		return claimed, err
	}
	at := w.Subject.Shard()
	w.Subject, w.Event = holder, id.Event{}
	a, err := calls.CallLeader(ctx, r.Calls, shardRefuse, at, shardfsm.Refuse{EventWrite: w})
	switch {
	case err != nil:
		return 0, err
	case a.Status == shardfsm.Replayed: // it had its effect meanwhile
		return claimedNever, nil
	case a.Status == shardfsm.Done:
		return 0, admission.ExternalTaken(holder)
	}
	return 0, admission.EnrolRefusal(ctx, r.Cluster, a, at, n.Gallery.Tenant, router.Write{Operation: w.Op})
}

// Claim makes subject the holder of a name. It returns the Claimed of the write that gives the
// subject its note, or the other subject that has the external id. It claims nothing if the shard
// remembers the operation of that write.
func (r *ClaimRequests) Claim(ctx context.Context, n Named, subject id.Subject, op id.Operation) (claimed uint64, holder id.Subject, err error) {
	state, err := lookup.Subject(ctx, r.Cluster, n.Gallery, lookup.SubjectQuery{Subject: subject, Operation: op})
	switch {
	case err != nil:
		return 0, holder, err
	case state.Known:
		return claimedNever, holder, nil
	}
	change, end, pause := claim.Change{Name: n.Name, Subject: subject}, time.Now().Add(claimWait), claimPauseMin
	for {
		held, err := r.changeClaim(ctx, n, change)
		if err != nil || held.Subject == subject {
			return state.Bars + 1, id.Subject{}, err
		}
		change.From = claim.Holder{}
		has, err := r.hasName(ctx, n, held.Subject)
		if err == nil && !has && time.Now().After(end) {
			if has, err = r.barUnlessNamed(ctx, n, held.Subject); !has {
				change.From = held
			}
		}
		switch {
		case err != nil:
			return 0, id.Subject{}, err
		case has:
			return 0, held.Subject, nil
		case !change.From.Subject.IsZero():
			continue
		}
		if err := cluster.Pause(ctx, pause); err != nil {
			return 0, id.Subject{}, err
		}
		pause = min(2*pause, claimPauseMax)
	}
}

// barUnlessNamed bars the older claims of a subject, and reports whether it has the name in spite
// of that.
func (r *ClaimRequests) barUnlessNamed(ctx context.Context, n Named, subject id.Subject) (bool, error) {
	a, err := calls.CallLeader(ctx, r.Calls, shardBar, subject.Shard(), shardfsm.Bar{
		Gallery: n.Gallery.ID, Generation: n.Gallery.Generation, Subject: subject,
	})
	if err == nil {
		err = admission.WriteError(a.Status)
	}
	if err != nil {
		return false, err
	}
	return r.hasName(ctx, n, subject)
}

// giveUp removes the claim of a subject to a name, unless the subject has the name.
func (r *ClaimRequests) giveUp(ctx context.Context, n Named, subject id.Subject) error {
	held, err := r.holder(ctx, n)
	if err != nil || held.Subject != subject {
		return err
	}
	if has, err := r.hasName(ctx, n, subject); has || err != nil {
		return err
	}
	if has, err := r.barUnlessNamed(ctx, n, subject); has || err != nil {
		return err
	}
	_, err = r.changeClaim(ctx, n, claim.Change{Name: n.Name, From: held})
	return err
}

// Tidy gives up a claim that a write has left behind. If that fails, ScrubClaims does it later.
func (r *ClaimRequests) Tidy(ctx context.Context, n Named, subject id.Subject) {
	if n.Name.IsZero() {
		return
	}
	if err := r.giveUp(ctx, n, subject); err != nil {
		r.Log.InfoContext(ctx, "a claim to an external id could not be given up; the next scrub of claims removes it", "gallery", n.Gallery.ID, "err", err)
	}
}

func (r *ClaimRequests) changeClaim(ctx context.Context, n Named, change claim.Change) (claim.Holder, error) {
	list, err := r.changeClaims(ctx, r.homeOf(n.Name), n.Gallery, []claim.Change{change})
	if err != nil {
		return claim.Holder{}, err
	}
	return list[0], nil
}

// changeClaims changes claims of one home and returns their holders.
func (r *ClaimRequests) changeClaims(ctx context.Context, home id.Shard, g cluster.Gallery, changes []claim.Change) ([]claim.Holder, error) {
	a, err := calls.CallLeader(ctx, r.Calls, shardClaim, home, shardfsm.Claim{
		Gallery: g.ID, Generation: g.Generation, Changes: changes,
	})
	if err == nil {
		err = admission.WriteError(a.Status)
	}
	if err == nil && len(a.Holders) != len(changes) {
		err = lookup.ErrCount
	}
	return a.Holders, err
}

func (r *ClaimRequests) holder(ctx context.Context, n Named) (claim.Holder, error) {
	return calls.CallLeader(ctx, r.Calls, shardHolder, r.homeOf(n.Name), holderQuery{n.Gallery.ID, n.Gallery.Generation, n.Name})
}

// hasName reports whether a subject has a name.
func (r *ClaimRequests) hasName(ctx context.Context, n Named, subject id.Subject) (bool, error) {
	a, err := lookup.Subject(ctx, r.Cluster, n.Gallery, lookup.SubjectQuery{Subject: subject})
	return err == nil && a.Name() == n.Name, err
}

// Find returns the subject that has a name. The error is NotFound if none has.
func (r *ClaimRequests) Find(ctx context.Context, n Named) (id.Subject, lookup.SubjectAnswer, error) {
	var before claim.Holder
	for range findRounds {
		held, err := r.holder(ctx, n)
		if err != nil {
			return id.Subject{}, lookup.SubjectAnswer{}, err
		}
		if held.Subject.IsZero() || held == before {
			break // nobody, or the holder's registration has not ended
		}
		a, err := lookup.Subject(ctx, r.Cluster, n.Gallery, lookup.SubjectQuery{Subject: held.Subject})
		if err != nil || a.Name() == n.Name {
			return held.Subject, a, err
		}
		before = held
	}
	return id.Subject{}, lookup.SubjectAnswer{}, admission.SubjectNotFound()
}

// holderQuery asks the home of a name for its holder.
type holderQuery struct {
	Gallery    id.Gallery         `cbor:"1,keyasint"`
	Generation uint32             `cbor:"2,keyasint"`
	Name       shard.ExternalName `cbor:"3,keyasint"`
}

var shardHolder = cluster.MachineRead("shard.holder", func(m *shardfsm.Machine, q holderQuery) (claim.Holder, error) {
	if err := m.Shard().Check(q.Gallery, q.Generation); err != nil {
		return claim.Holder{}, err
	}
	return m.Claims().Holder(q.Gallery, q.Generation, q.Name), nil
})

var (
	shardClaim  = cluster.ShardCommand("shard.claim", shardfsm.ClaimOp, nil)
	shardBar    = cluster.ShardCommand("shard.bar", shardfsm.BarOp, nil)
	shardRefuse = cluster.ShardCommand("shard.refuse", shardfsm.RefuseOp, func(c *shardfsm.Refuse) *int64 { return &c.Time })
)
