package router

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/mutant"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/seal"
)

// clockSkewMax is how far a proposed time may be off the leader's own.
const clockSkewMax = 5 * time.Second

// firstEpoch is the epoch of a gallery that never grew.
const firstEpoch = 1

// Purposes of derived ids. They are part of what a retry must find again.
const (
	purposeSubject = "subject"
	purposeEvent   = "event"
)

// Register enrols the one face of an image as a new subject with one event. A
// retry with the same Write gets the first answer.
func (r *subjectRequests) Register(ctx context.Context, reg Registration) (Registered, error) {
	g, app, err := r.enrolment(reg.Access)
	if err != nil {
		return Registered{}, err
	}
	face, tags, err := r.enrolled(ctx, g, app.MinimumQuality, reg.Image, reg.Tags)
	if err != nil {
		return Registered{}, err
	}
	return whole(ctx, r.cluster, g, func(g enrolment) (Registered, error) {
		home, err := r.home(ctx, g, reg.Write.Operation)
		if err != nil {
			return Registered{}, err
		}
		return r.put(ctx, placement{
			gallery: g, application: app, home: home, subject: g.subject(reg.Write.Operation, home),
			write: reg.Write, face: face, tags: tags,
		})
	})
}

// subject gives the id of the subject that an operation makes on a shard.
func (g enrolment) subject(op id.Operation, home id.Shard) id.Subject {
	return id.Subject{UUID: id.Derive(g.IDKey[:], purposeSubject, op, home)}
}

// event gives the id of the event that an operation makes on a shard.
func (g enrolment) event(op id.Operation, home id.Shard) id.Event {
	return id.Event{UUID: id.Derive(g.IDKey[:], purposeEvent, op, home)}
}

// home gives the shard of a new subject. An operation whose shard changed because
// the gallery grew stays where it was done before.
func (r *subjectRequests) home(ctx context.Context, g enrolment, op id.Operation) (id.Shard, error) {
	at := func(n int) id.Shard { return g.shards[metafsm.Jump(binary.BigEndian.Uint64(op[:8]), n)] }
	home := at(len(g.shards))
	if g.Epoch == firstEpoch || mutant.RetryNewShard {
		return home, nil
	}
	last := home
	for n := len(g.shards) - 1; n > 0; n-- {
		earlier := at(n)
		if earlier == last {
			continue
		}
		last = earlier
		known, err := calls.Ask(ctx, r.calls, shardKnows, earlier, knowsQuery{
			Made: eventsQuery{g.ID, g.Generation, g.subject(op, earlier)}, Event: g.event(op, earlier), Operation: op, Epoch: g.Epoch,
		})
		if err != nil || known {
			return earlier, err
		}
	}
	return home, nil
}

// knowsQuery asks for an enrolment by the subject and event that it makes on a shard.
type knowsQuery struct {
	Made      eventsQuery  `cbor:"1,keyasint"`
	Event     id.Event     `cbor:"2,keyasint"`
	Operation id.Operation `cbor:"3,keyasint"`
	// Epoch is the gallery's to the asker, who would enrol elsewhere by it.
	Epoch uint32 `cbor:"4,keyasint"`
}

// shardKnows tells whether a shard remembers an enrolment, whatever became of its
// subject, or has the subject, after however long. If not, a first try that is still
// under way by an earlier epoch will be refused: the shard learns of the epoch.
var shardKnows = method[knowsQuery, bool]{Name: "shard.knows", Run: func(ctx context.Context, r *Router, group id.Shard, q knowsQuery) (bool, error) {
	s, err := r.widened(ctx, group, shardfsm.Widen{Gallery: q.Made.Gallery, Generation: q.Made.Generation, Epoch: q.Epoch})
	if err != nil {
		return false, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return false, &raftfsm.NotLeaderError{}
	}
	if m.Remembers(q.Operation) || s.Pending().Has(q.Made.Gallery, q.Event) {
		return true, nil
	}
	events, err := s.Events(q.Made.Gallery, q.Made.Generation, q.Made.Subject)
	return len(events) > 0, outdated(err)
}}

// widened is read of a shard that knows an epoch of a gallery, or a later one.
func (r *Router) widened(ctx context.Context, group id.Shard, to shardfsm.Widen) (*shard.Shard, error) {
	s, err := r.read(ctx, group)
	if err == nil && s.Epoch(to.Gallery) < to.Epoch {
		_, err = shardWiden.Run(ctx, r, group, to)
	}
	return s, err
}

// placement is a face on its way to a shard.
type placement struct {
	gallery     enrolment
	application metafsm.Application
	home        id.Shard
	subject     id.Subject
	further     bool // a further event of a subject that exists
	write       Write
	face        engine.Face
	tags        []uint32
}

func (p placement) event() id.Event { return p.gallery.event(p.write.Operation, p.home) }

// put commits a face, and guards the gallery first if the application says so.
func (r *subjectRequests) put(ctx context.Context, p placement) (Registered, error) {
	key, err := r.dataKey(p.gallery.Gallery)
	if err != nil {
		return Registered{}, err
	}
	sealed := shard.SealFace(key, faceRef(p.gallery, p.subject, p.event()), p.face)
	for range guardRounds {
		a, err := r.commit(ctx, p, sealed, p.application.Guard)
		if err != nil {
			return Registered{}, err
		}
		if p.application.Guard && a.Status == shardfsm.Done {
			if a, err = r.guarded(ctx, p, a.Claim); err != nil {
				return Registered{}, err
			}
			if a.Status == shardfsm.UnknownEvent { // a rival took it away
				continue
			}
		}
		return r.registered(p.gallery, key, a.RegisterAnswer, p.face)
	}
	return Registered{}, &Error{Kind: Busy, Message: "this person is being enrolled by others; try again", RetryAfter: calls.RetryLater}
}

// commit proposes a face to its shard, with a slot found.
func (r *subjectRequests) commit(ctx context.Context, p placement, sealed []byte, pending bool) (registerAnswer, error) {
	g, w := p.gallery, p.write
	return r.slotted(ctx, g, p.home, func(recycle bool) (registerAnswer, error) {
		c := shardfsm.Register{
			EventWrite: shardfsm.EventWrite{
				Gallery: g.ID, Generation: g.Generation, Op: w.Operation, Request: w.Request, Keyed: w.Keyed,
				Subject: p.subject, Event: p.event(), Time: time.Now().UnixMilli(),
			},
			Tags: p.tags, Sealed: sealed, Recycle: recycle, Pending: pending,
		}
		if p.further { // its shard is its subject's, whatever the epoch
			return calls.Ask(ctx, r.calls, shardAdd, p.home, shardfsm.AddEvent(c))
		}
		c.Epoch = g.Epoch
		return calls.Ask(ctx, r.calls, shardRegister, p.home, c)
	})
}

// registered makes the client's answer of the shard's. What was stored first
// counts: a retry gets the first answer's attributes as long as the event lives.
func (r *subjectRequests) registered(g enrolment, key *seal.Key, a shardfsm.RegisterAnswer, face engine.Face) (Registered, error) {
	if err := refused(a.Status); err != nil {
		return Registered{}, err
	}
	out := Registered{Subject: a.Subject, Event: a.Event, Attributes: face.Attributes}
	if len(a.Sealed) > 0 {
		ref := faceRef(g, a.Subject, a.Event)
		ref.Revision = a.Revision
		first, err := shard.OpenFace(key, ref, a.Sealed)
		if err != nil {
			return Registered{}, fmt.Errorf("open a registered face: %w", err)
		}
		out.Attributes = first.Attributes
	}
	return out, nil
}

func faceRef(g enrolment, subject id.Subject, event id.Event) shard.FaceRef {
	return shard.FaceRef{Gallery: g.ID, Generation: g.Generation, Subject: subject, Event: event}
}

// Unregister removes a subject and its events. An unknown one is NotFound.
func (r *subjectRequests) Unregister(ctx context.Context, access Access, subject id.Subject) error {
	g, _, err := r.located(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return err
	}
	// The operation is this call's own: a retry within it finds its outcome, and a
	// client's second request is a second operation.
	var op id.Operation
	mustRandom(op[:])
	a, err := calls.Ask(ctx, r.calls, shardUnregister, subject.Shard(), shardfsm.Unregister{
		Gallery: g.ID, Generation: g.Generation, Op: op, Time: time.Now().UnixMilli(), Subject: subject,
	})
	if err != nil {
		return err
	}
	return refused(a.Status)
}

func operationsFull() error {
	return &Error{Kind: Busy, Message: "too many recent writes are remembered; try again later", RetryAfter: time.Minute}
}

func keyReused() error {
	return Errorf(InvalidRequest, ReasonKeyReused, "the idempotency key was used with another body")
}

// onTime replaces a proposed time that is more than clockSkewMax off this node's:
// one wrong clock must not move a shard's time.
func onTime(proposed int64) int64 {
	now := time.Now()
	if off := now.Sub(time.UnixMilli(proposed)).Abs(); off > clockSkewMax {
		return now.UnixMilli()
	}
	return proposed
}
