package subjects

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
	"facet/router/lookup"
	"facet/router/searches"
	"facet/shard"
)

const (
	// guardRounds is the most times that a registration starts again because a rival
	// withdrew its pending face, or gave up its own.
	guardRounds = 16
	// rivalWait is how long a registration waits for the outcome of a rival before it
	// withdraws the rival's face. rivalPause is the pause between two looks.
	rivalWait  = 3 * time.Second
	rivalPause = 20 * time.Millisecond
)

// activateUnlessKnown activates a pending face unless the gallery already has the
// person. In that case the error is Duplicate, the subject in its message is
// active, and found says how it was found.
//
// It also searches the pending faces of other registrations. Two registrations of
// one person may run at once on different shards, and at least one of them then sees
// the other. The one with the smaller event id withdraws its rival and continues. The
// other one waits for it.
//
// claim is the number under which the shard stored the pending face. The status is
// UnknownEvent when the registration has to start again: a rival has withdrawn the
// face, or the rival that it waited for has failed.
func (r *SubjectRequests) activateUnlessKnown(ctx context.Context, p Placement, claim uint64) (a shardfsm.RegisterAnswer, found guarded, err error) {
	known, rivals, receipt, err := r.matches(ctx, p)
	if err != nil {
		return a, found, err
	}
	found = guarded{receipt: receipt}
	if known == nil && len(rivals) > 0 {
		if least := slices.MinFunc(rivals, byEvent); bytes.Compare(least.Event.UUID[:], eventBytes(p)) < 0 {
			found.Hit = least
			a, err = r.yield(ctx, p, least)
			return a, found, err
		}
	}
	for _, rival := range rivals {
		if known != nil {
			break
		}
		a, err := calls.CallLeader(ctx, r.cluster.Calls, shardWithdraw, rival.Event.Shard(), withdrawal(p, rival.Subject, rival.Event))
		if err != nil {
			return shardfsm.RegisterAnswer{}, found, err
		}
		if a.Status == shardfsm.Activated { // the rival searched before this face was pending
			known = &rival
		}
	}
	if known != nil {
		found.Hit = *known
		return a, found, cmp.Or(r.withdrawOwn(ctx, p), enrolledAs(known.Subject))
	}
	a, err = calls.CallLeader(ctx, r.cluster.Calls, shardActivate, p.Home, shardfsm.Activate{
		EventWrite: shardfsm.EventWrite{
			Gallery: p.Gallery.ID, Generation: p.Gallery.Generation, Op: p.Write.Operation, Request: p.Write.Request, Keyed: p.Write.Keyed,
			Subject: p.Subject, Event: p.Event(), Time: cluster.OnTime(r.cluster.Clock, 0), Share: admission.Share(r.cluster, p.Gallery.Tenant),
		},
		Claim: claim,
	})
	if err == nil && (a.Status == shardfsm.OverWrites || a.Status == shardfsm.OpsFull) {
		err = r.withdrawOwn(ctx, p) // others need not wait for it, and its slot is free again
	}
	return a, found, err
}

// guarded is the enrolled subject that a guard found, and the receipt of its search, which is nil unless the
// tenant's requests have audit records.
type guarded struct {
	shard.Hit
	receipt *router.Receipt
}

// refused returns what the caller of a registration gets beside the error Duplicate.
func (f guarded) refused(p Placement) router.Registered {
	return router.Registered{Subject: f.Subject, Attributes: p.Face.Attributes, Known: &router.Known{
		Score: f.Score, Threshold: p.Application.GuardThreshold, Searched: router.Searched{Generation: p.Gallery.Generation, Model: p.Face.Model, Receipt: f.receipt},
	}}
}

// byEvent compares the ids of two events.
func byEvent(a, b shard.Hit) int { return bytes.Compare(a.Event.UUID[:], b.Event.UUID[:]) }

// enrolledAs returns the answer to a registration of an enrolled person.
func enrolledAs(subject id.Subject) error {
	return router.Errorf(router.Duplicate, "", "this person is enrolled already, as subject: %s", subject)
}

// yield withdraws p's face in favour of a rival with a smaller id and waits for its
// outcome. The rival may find the person enrolled, or meet a rival with a still smaller
// id, or lose its node: its subject then never exists, and p starts again.
func (r *SubjectRequests) yield(ctx context.Context, p Placement, rival shard.Hit) (shardfsm.RegisterAnswer, error) {
	again := shardfsm.RegisterAnswer{Status: shardfsm.UnknownEvent}
	if err := r.withdrawOwn(ctx, p); err != nil {
		return again, err
	}
	at := lookup.EventsQuery{Gallery: p.Gallery.ID, Generation: p.Gallery.Generation, Subject: rival.Subject}
	for end := time.Now().Add(rivalWait); time.Now().Before(end); {
		undecided, err := calls.CallLeader(ctx, r.cluster.Calls, shardKnows, rival.Event.Shard(), knowsQuery{Made: at, Event: rival.Event})
		if err != nil || !undecided {
			return again, err
		}
		active, err := lookup.Events(ctx, r.cluster, p.Gallery, rival.Subject)
		if err != nil {
			return again, err
		}
		if slices.ContainsFunc(active, func(a shard.Active) bool { return a.Event == rival.Event }) {
			return again, enrolledAs(rival.Subject)
		}
		if err := cluster.Pause(ctx, rivalPause); err != nil {
			return again, err
		}
	}
	a, err := calls.CallLeader(ctx, r.cluster.Calls, shardWithdraw, rival.Event.Shard(), withdrawal(p, rival.Subject, rival.Event))
	if err == nil && a.Status == shardfsm.Activated {
		err = enrolledAs(rival.Subject)
	}
	return again, err
}

// withdrawOwn withdraws p's pending face.
func (r *SubjectRequests) withdrawOwn(ctx context.Context, p Placement) error {
	_, err := calls.CallLeader(ctx, r.cluster.Calls, shardWithdraw, p.Home, withdrawal(p, p.Subject, p.Event()))
	return err
}

// matches searches the gallery for p's face. known is an active subject other than
// p's. rivals are pending events of other subjects. The receipt is that of the search for active ones, or
// nil.
func (r *SubjectRequests) matches(ctx context.Context, p Placement) (known *shard.Hit, rivals []shard.Hit, receipt *router.Receipt, err error) {
	audited := audits(r.cluster.Groups.Meta(), p.Gallery.Tenant)
	for _, pending := range []bool{true, false} {
		asked := p.Gallery
		lists, err := searches.Settled(ctx, r.cluster, p.Gallery, func(g cluster.Gallery) ([][]searches.NotedHit, error) {
			asked = g
			return calls.Scatter(ctx, r.cluster.Calls, searches.ShardSearch, g.ShardIDs, searches.SearchQuery{
				Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Probe: p.Face.Template, Model: p.Face.Model,
				Threshold: p.Application.GuardThreshold, Limit: router.SearchLimitMax, BySubject: true, Pending: pending, Receipt: audited && !pending,
			})
		})
		if err != nil {
			return nil, nil, nil, err
		}
		if audited && !pending {
			receipt = searches.ReceiptOf(r.cluster, asked.Gallery, lists)
		}
		for _, c := range searches.CandidatesOf(searches.BestHits(lists, router.SearchLimitMax)) {
			hit := shard.Hit{Subject: c.Subject, Event: c.Events[0].Event, Score: c.Score}
			switch {
			case c.Subject == p.Subject:
			case pending:
				rivals = append(rivals, hit)
			case known == nil:
				known = &hit
			}
		}
	}
	return known, rivals, receipt, nil
}

func withdrawal(p Placement, subject id.Subject, event id.Event) shardfsm.Withdraw {
	return shardfsm.Withdraw{Gallery: p.Gallery.ID, Generation: p.Gallery.Generation, Subject: subject, Event: event, Time: time.Now().UnixMilli()}
}

var shardActivate = cluster.ShardCommand("shard.activate", shardfsm.ActivateOp, func(c *shardfsm.Activate) *int64 { return &c.Time })

var shardWithdraw = cluster.ShardCommand("shard.withdraw", shardfsm.WithdrawOp, func(c *shardfsm.Withdraw) *int64 { return &c.Time })
