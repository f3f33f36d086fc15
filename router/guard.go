package router

import (
	"bytes"
	"context"

	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/command"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
)

// guardRounds bounds how often a registration begins again because a rival took
// its pending face away and then did not go on.
const guardRounds = 8

// guarded lets a pending face become active unless the gallery knows the person:
// then it is Duplicate. Pending faces of others are searched, too, so that of two
// registrations of one person at once, on different shards, one sees the other: the
// smaller id goes on, after it has withdrawn its rival. claim is what the shard
// called the pending face; UnknownEvent says that it was withdrawn since.
func (r *subjectRequests) guarded(ctx context.Context, p placement, claim uint64) (registerAnswer, error) {
	known, rivals, err := r.matches(ctx, p)
	if err != nil {
		return registerAnswer{}, err
	}
	for _, rival := range rivals {
		if known != nil {
			break
		}
		if bytes.Compare(rival.Event.UUID[:], eventBytes(p)) < 0 {
			known = &rival
			continue
		}
		a, err := calls.Ask(ctx, r.calls, shardWithdraw, rival.Event.Shard(), withdrawal(p, rival.Subject, rival.Event))
		if err != nil {
			return registerAnswer{}, err
		}
		if a.Status == shardfsm.Activated { // it searched before this one was pending
			known = &rival
		}
	}
	if known != nil {
		if _, err := calls.Ask(ctx, r.calls, shardWithdraw, p.home, withdrawal(p, p.subject, p.event())); err != nil {
			return registerAnswer{}, err
		}
		return registerAnswer{}, Errorf(Duplicate, "", "this person is enrolled already, as subject %s", known.Subject)
	}
	return calls.Ask(ctx, r.calls, shardActivate, p.home, shardfsm.Activate{
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

// matches gives a subject other than p's that matches p's face, and pending events
// that do.
func (r *subjectRequests) matches(ctx context.Context, p placement) (known *shard.Hit, rivals []shard.Hit, err error) {
	for _, pending := range []bool{true, false} {
		lists, err := whole(ctx, r.cluster, p.gallery, func(g enrolment) ([][]shard.Hit, error) {
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

var shardActivate = method[shardfsm.Activate, registerAnswer]{Name: "shard.activate", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Activate) (registerAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return registerAnswer{}, err
	}
	c.Time = onTime(c.Time)
	return answered(ctx, g, shardfsm.ActivateOp, c)
}}

var shardWithdraw = method[shardfsm.Withdraw, shardfsm.StatusAnswer]{Name: "shard.withdraw", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.Withdraw) (shardfsm.StatusAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.StatusAnswer{}, err
	}
	c.Time = onTime(c.Time)
	return propose(ctx, g, shardfsm.WithdrawOp, c)
}}

// answered proposes a write whose answer is a RegisterAnswer.
func answered[C any](ctx context.Context, g *raftfsm.Group, op command.Op[C, shardfsm.RegisterAnswer], c C) (registerAnswer, error) {
	a, err := propose(ctx, g, op, c)
	return registerAnswer{RegisterAnswer: a}, err
}
