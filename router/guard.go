package router

import (
	"bytes"
	"context"

	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
)

// guardRounds is the most times that a registration starts again because a rival
// withdrew its pending face and then stopped.
const guardRounds = 8

// activateUnlessKnown activates a pending face unless the gallery already has the
// person. In that case the error is Duplicate.
//
// It also searches the pending faces of other registrations. Two registrations of
// one person may run at once on different shards, and at least one of them then sees
// the other. The one with the smaller event id withdraws its rival and continues.
//
// claim is the number under which the shard stored the pending face. The status is
// UnknownEvent when a rival has withdrawn the face.
func (r *subjectRequests) activateUnlessKnown(ctx context.Context, p placement, claim uint64) (shardfsm.RegisterAnswer, error) {
	known, rivals, err := r.matches(ctx, p)
	if err != nil {
		return shardfsm.RegisterAnswer{}, err
	}
	for _, rival := range rivals {
		if known != nil {
			break
		}
		if bytes.Compare(rival.Event.UUID[:], eventBytes(p)) < 0 {
			known = &rival
			continue
		}
		a, err := calls.CallLeader(ctx, r.calls, shardWithdraw, rival.Event.Shard(), withdrawal(p, rival.Subject, rival.Event))
		if err != nil {
			return shardfsm.RegisterAnswer{}, err
		}
		if a.Status == shardfsm.Activated { // the rival searched before this face was pending
			known = &rival
		}
	}
	if known != nil {
		if _, err := calls.CallLeader(ctx, r.calls, shardWithdraw, p.home, withdrawal(p, p.subject, p.event())); err != nil {
			return shardfsm.RegisterAnswer{}, err
		}
		return shardfsm.RegisterAnswer{}, Errorf(Duplicate, "", "this person is enrolled already, as subject %s", known.Subject)
	}
	return calls.CallLeader(ctx, r.calls, shardActivate, p.home, shardfsm.Activate{
		EventWrite: shardfsm.EventWrite{
			Gallery: p.gallery.ID, Generation: p.gallery.Generation, Op: p.write.Operation, Request: p.write.Request, Keyed: p.write.Keyed,
			Subject: p.subject, Event: p.event(), Time: onTime(0),
		},
		Claim: claim,
	})
}

func eventBytes(p placement) []byte {
	e := p.event()
	return e.UUID[:]
}

// matches searches the gallery for p's face. known is an active subject other than
// p's. rivals are pending events of other subjects.
func (r *subjectRequests) matches(ctx context.Context, p placement) (known *shard.Hit, rivals []shard.Hit, err error) {
	for _, pending := range []bool{true, false} {
		lists, err := withFreshShards(ctx, r.cluster, p.gallery, func(g enrolment) ([][]shard.Hit, error) {
			return calls.Scatter(ctx, r.calls, shardSearch, g.shards, searchQuery{
				Gallery: g.ID, Generation: g.Generation, Epoch: g.Epoch, Probe: p.face.Template, Model: p.face.Model,
				Threshold: p.application.GuardThreshold, Limit: SearchLimitMax, BySubject: true, Pending: pending,
			})
		})
		if err != nil {
			return nil, nil, err
		}
		for _, c := range merge(lists, SearchLimitMax) {
			hit := shard.Hit{Subject: c.Subject, Event: c.Events[0].Event, Score: c.Score}
			switch {
			case c.Subject == p.subject:
			case pending:
				rivals = append(rivals, hit)
			case known == nil:
				known = &hit
			}
		}
	}
	return known, rivals, nil
}

func withdrawal(p placement, subject id.Subject, event id.Event) shardfsm.Withdraw {
	return shardfsm.Withdraw{Gallery: p.gallery.ID, Generation: p.gallery.Generation, Subject: subject, Event: event, Time: onTime(0)}
}

var shardActivate = shardCommand("shard.activate", shardfsm.ActivateOp, func(c *shardfsm.Activate) { c.Time = onTime(c.Time) })

var shardWithdraw = shardCommand("shard.withdraw", shardfsm.WithdrawOp, func(c *shardfsm.Withdraw) { c.Time = onTime(c.Time) })
