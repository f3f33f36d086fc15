package router

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
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

// claims finds, makes and gives up the claims of subjects to external ids.
type claims struct{ *cluster }

// named is the name of an external id in a gallery.
type named struct {
	gallery enrolment
	name    shard.ExternalName
}

// homeOf returns the home shard of a name. It depends on nothing that changes.
func (r *cluster) homeOf(name shard.ExternalName) id.Shard {
	cluster, _ := r.groups.Meta().Cluster()
	return homeAmong(name, cluster.Shards)
}

func homeAmong(name shard.ExternalName, shards int) id.Shard {
	return id.Shard(metafsm.Jump(binary.BigEndian.Uint64(name[:8]), shards) + 1)
}

// claimFor is claim for a write. If another subject has the external id, the error is Duplicate, and the
// operation has no effect any more, by no try that may still be under way.
func (r *claims) claimFor(ctx context.Context, n named, w shardfsm.EventWrite) (claimed uint64, err error) {
	claimed, holder, err := r.claim(ctx, n, w.Subject, w.Op)
	if err != nil || holder.IsZero() {
		return claimed, err
	}
	at := w.Subject.Shard()
	w.Subject, w.Event = holder, id.Event{}
	a, err := calls.CallLeader(ctx, r.calls, shardRefuse, at, shardfsm.Refuse{EventWrite: w})
	switch {
	case err != nil:
		return 0, err
	case a.Status == shardfsm.Replayed: // it had its effect meanwhile
		return claimedNever, nil
	case a.Status == shardfsm.Done:
		return 0, externalTaken(holder)
	}
	return 0, r.enrolRefusal(ctx, a, at, n.gallery.Tenant, Write{Operation: w.Op})
}

// claim makes subject the holder of a name. It returns the Claimed of the write that gives the
// subject its note, or the other subject that has the external id. It claims nothing if the shard
// remembers the operation of that write.
func (r *claims) claim(ctx context.Context, n named, subject id.Subject, op id.Operation) (claimed uint64, holder id.Subject, err error) {
	state, err := r.subject(ctx, n.gallery, subjectQuery{Subject: subject, Operation: op})
	switch {
	case err != nil:
		return 0, holder, err
	case state.Known:
		return claimedNever, holder, nil
	}
	change, end, pause := claim.Change{Name: n.name, Subject: subject}, time.Now().Add(claimWait), claimPauseMin
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
		select {
		case <-time.After(pause):
			pause = min(2*pause, claimPauseMax)
		case <-ctx.Done():
			return 0, id.Subject{}, ctx.Err()
		}
	}
}

// externalTaken returns the error for an external id that another subject has.
func externalTaken(subject id.Subject) error {
	return Errorf(Duplicate, "", "another subject has this externalId: %s", subject)
}

// barUnlessNamed bars the older claims of a subject, and reports whether it has the name in spite
// of that.
func (r *claims) barUnlessNamed(ctx context.Context, n named, subject id.Subject) (bool, error) {
	a, err := calls.CallLeader(ctx, r.calls, shardBar, subject.Shard(), shardfsm.Bar{
		Gallery: n.gallery.ID, Generation: n.gallery.Generation, Subject: subject,
	})
	if err == nil {
		err = writeError(a.Status)
	}
	if err != nil {
		return false, err
	}
	return r.hasName(ctx, n, subject)
}

// giveUp removes the claim of a subject to a name, unless the subject has the name.
func (r *claims) giveUp(ctx context.Context, n named, subject id.Subject) error {
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
	_, err = r.changeClaim(ctx, n, claim.Change{Name: n.name, From: held})
	return err
}

// tidy gives up a claim that a write has left behind. If that fails, ScrubClaims does it later.
func (r *claims) tidy(ctx context.Context, n named, subject id.Subject) {
	if n.name.IsZero() {
		return
	}
	if err := r.giveUp(ctx, n, subject); err != nil {
		r.log.InfoContext(ctx, "a claim to an external id could not be given up; the next scrub of claims removes it", "gallery", n.gallery.ID, "err", err)
	}
}

func (r *claims) changeClaim(ctx context.Context, n named, change claim.Change) (claim.Holder, error) {
	list, err := r.changeClaims(ctx, r.homeOf(n.name), n.gallery, []claim.Change{change})
	if err != nil {
		return claim.Holder{}, err
	}
	return list[0], nil
}

// changeClaims changes claims of one home and returns their holders.
func (r *cluster) changeClaims(ctx context.Context, home id.Shard, g enrolment, changes []claim.Change) ([]claim.Holder, error) {
	a, err := calls.CallLeader(ctx, r.calls, shardClaim, home, shardfsm.Claim{
		Gallery: g.ID, Generation: g.Generation, Changes: changes,
	})
	if err == nil {
		err = writeError(a.Status)
	}
	if err == nil && len(a.Holders) != len(changes) {
		err = errHolders
	}
	return a.Holders, err
}

func (r *claims) holder(ctx context.Context, n named) (claim.Holder, error) {
	return calls.CallLeader(ctx, r.calls, shardHolder, r.homeOf(n.name), holderQuery{n.gallery.ID, n.gallery.Generation, n.name})
}

// hasName reports whether a subject has a name.
func (r *claims) hasName(ctx context.Context, n named, subject id.Subject) (bool, error) {
	a, err := r.subject(ctx, n.gallery, subjectQuery{Subject: subject})
	return err == nil && a.name() == n.name, err
}

// find returns the subject that has a name. The error is NotFound if none has.
func (r *claims) find(ctx context.Context, n named) (id.Subject, subjectAnswer, error) {
	var before claim.Holder
	for range findRounds {
		held, err := r.holder(ctx, n)
		if err != nil {
			return id.Subject{}, subjectAnswer{}, err
		}
		if held.Subject.IsZero() || held == before {
			break // nobody, or the holder's registration has not ended
		}
		a, err := r.subject(ctx, n.gallery, subjectQuery{Subject: held.Subject})
		if err != nil || a.name() == n.name {
			return held.Subject, a, err
		}
		before = held
	}
	return id.Subject{}, subjectAnswer{}, subjectNotFound()
}

// subjectQuery asks for a subject, and whether its shard remembers an operation.
type subjectQuery struct {
	Gallery    id.Gallery   `cbor:"1,keyasint"`
	Generation uint32       `cbor:"2,keyasint"`
	Subject    id.Subject   `cbor:"3,keyasint"`
	Operation  id.Operation `cbor:"4,keyasint"`
	// Heir asks for the face of the subject's second event.
	Heir bool `cbor:"5,keyasint,omitempty"`
}

type subjectAnswer struct {
	// Known reports whether the shard remembers the operation.
	Known bool `cbor:"1,keyasint,omitempty"`
	// Bars is the shard's count of bars (claim.Book.Bars).
	Bars   uint64         `cbor:"2,keyasint,omitempty"`
	Events []shard.Active `cbor:"3,keyasint,omitempty"`
	// Entries are the lines of the active events in the list.
	Entries []shard.Entry `cbor:"4,keyasint,omitempty"`
	// Heir is the sealed face of the second event.
	Heir []byte `cbor:"5,keyasint,omitempty"`
}

// name returns the name of the subject's external id, or the zero name.
func (a subjectAnswer) name() shard.ExternalName {
	if len(a.Events) == 0 {
		return shard.ExternalName{}
	}
	return shard.ExternalOf(a.Events[0].Note)
}

func (r *cluster) subject(ctx context.Context, g enrolment, q subjectQuery) (subjectAnswer, error) {
	q.Gallery, q.Generation = g.ID, g.Generation
	return calls.CallLeader(ctx, r.calls, shardSubject, q.Subject.Shard(), q)
}

var shardSubject = method[subjectQuery, subjectAnswer]{Name: "shard.subject", Run: func(ctx context.Context, r *Router, group id.Shard, q subjectQuery) (subjectAnswer, error) {
	m, err := r.leaderMachine(ctx, group)
	if err != nil {
		return subjectAnswer{}, err
	}
	s := m.Shard()
	// Read the bars before the events: a bar that comes in between counts as later.
	a := subjectAnswer{Bars: m.Claims().Bars(), Known: m.Remembers(q.Operation)}
	if a.Events, err = s.Events(q.Gallery, q.Generation, q.Subject); err != nil {
		return a, outdated(err)
	}
	a.Entries = s.ListSubject(q.Gallery, q.Subject)
	if q.Heir && len(a.Events) > 1 {
		heir := a.Events[1]
		a.Heir, _ = s.Sealed(q.Gallery, q.Subject, heir.Event, heir.Revision)
	}
	return a, nil
}}

// holderQuery asks the home of a name for its holder.
type holderQuery struct {
	Gallery    id.Gallery         `cbor:"1,keyasint"`
	Generation uint32             `cbor:"2,keyasint"`
	Name       shard.ExternalName `cbor:"3,keyasint"`
}

var shardHolder = method[holderQuery, claim.Holder]{Name: "shard.holder", Run: func(ctx context.Context, r *Router, group id.Shard, q holderQuery) (claim.Holder, error) {
	m, err := r.leaderMachine(ctx, group)
	if err != nil {
		return claim.Holder{}, err
	}
	s := m.Shard()
	if err := s.Check(q.Gallery, q.Generation); err != nil {
		return claim.Holder{}, outdated(err)
	}
	return m.Claims().Holder(q.Gallery, q.Generation, q.Name), nil
}}

var (
	shardClaim  = shardCommand("shard.claim", shardfsm.ClaimOp, nil)
	shardBar    = shardCommand("shard.bar", shardfsm.BarOp, nil)
	shardRefuse = shardCommand("shard.refuse", shardfsm.RefuseOp, func(r *Router, c *shardfsm.Refuse) { c.Time = r.onTime(c.Time) })
)
