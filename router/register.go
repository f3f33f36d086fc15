package router

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
	"facet/shard/seal"
)

// clockSkewMax is the largest accepted difference between a proposed time and the
// leader's own.
const clockSkewMax = 5 * time.Second

// firstEpoch is the epoch of a gallery that never grew.
const firstEpoch = 1

// Purposes of derived ids. They are part of what a retry must find again.
const (
	purposeSubject = "subject"
	purposeEvent   = "event"
)

// Register enrols the one face of an image as a new subject with one event. A retry
// with the same Write gets the first answer.
func (r *subjectRequests) Register(ctx context.Context, reg Registration) (Registered, error) {
	g, app, err := r.enrolment(reg.Access)
	if err != nil {
		return Registered{}, err
	}
	expires, err := r.expiry(reg.Expires)
	if err != nil {
		return Registered{}, err
	}
	var face portrait.Taken
	var tags []uint32
	extracted := false
	return withFreshShards(ctx, r.cluster, g, func(g enrolment) (Registered, error) {
		home, err := r.home(ctx, g, reg.Write.Operation)
		if err == nil && !extracted {
			face, tags, err = r.extractEnrolment(ctx, g, home, app, reg)
			extracted = true
		}
		if err != nil {
			return Registered{}, err
		}
		return r.put(ctx, placement{
			gallery: g, application: app, home: home, subject: g.subject(reg.Write.Operation, home),
			write: reg.Write, face: face, tags: tags, note: reg.Note, expires: expires,
		})
	})
}

// subject returns the id of the subject that an operation creates on a shard.
func (g enrolment) subject(op id.Operation, home id.Shard) id.Subject {
	return id.Subject{UUID: id.Derive(g.IDKey[:], purposeSubject, op, home)}
}

// event returns the id of the event that an operation creates on a shard.
func (g enrolment) event(op id.Operation, home id.Shard) id.Event {
	return id.Event{UUID: id.Derive(g.IDKey[:], purposeEvent, op, home)}
}

// home returns the shard of a new subject.
func (r *subjectRequests) home(ctx context.Context, g enrolment, op id.Operation) (id.Shard, error) {
	return g.home(op, func(earlier id.Shard) (bool, error) {
		return calls.CallLeader(ctx, r.calls, shardKnows, earlier, knowsQuery{
			Made: eventsQuery{g.ID, g.Generation, g.subject(op, earlier)}, Event: g.event(op, earlier), Operation: op, Epoch: g.Epoch,
		})
	})
}

// home returns the shard on which op has its effect. The growth of a gallery
// changes the shard of an operation. But if an earlier try had its effect on the
// former shard, home returns that one. known reports whether op had its effect on a
// shard.
func (g enrolment) home(op id.Operation, known func(id.Shard) (bool, error)) (id.Shard, error) {
	at := func(n int) id.Shard { return g.shards[metafsm.Jump(binary.BigEndian.Uint64(op[:8]), n)] }
	home := at(len(g.shards))
	if g.Epoch == firstEpoch {
		return home, nil
	}
	last := home
	for n := len(g.shards) - 1; n > 0; n-- {
		earlier := at(n)
		if earlier == last {
			continue
		}
		last = earlier
		if done, err := known(earlier); err != nil || done {
			return earlier, err
		}
	}
	return home, nil
}

// knowsQuery asks for an enrolment by the subject and event that it creates on a
// shard.
type knowsQuery struct {
	Made      eventsQuery  `cbor:"1,keyasint"`
	Event     id.Event     `cbor:"2,keyasint"`
	Operation id.Operation `cbor:"3,keyasint"`
	// Epoch is the gallery's epoch on the calling node, which would enrol on
	// another shard.
	Epoch uint32 `cbor:"4,keyasint"`
}

// shardKnows reports whether a shard remembers an enrolment or still has its
// subject. If not, the shard learns the epoch. It then refuses a first try that is
// still under way with an earlier epoch.
var shardKnows = method[knowsQuery, bool]{Name: "shard.knows", Run: func(ctx context.Context, r *Router, group id.Shard, q knowsQuery) (bool, error) {
	s, err := r.widenedState(ctx, group, shardfsm.Widen{Gallery: q.Made.Gallery, Generation: q.Made.Generation, Epoch: q.Epoch})
	if err != nil {
		return false, err
	}
	m, ok := r.groups.Shard(group)
	if !ok {
		return false, &raftfsm.NotLeaderError{}
	}
	if m.Remembers(q.Operation) || s.IsPending(q.Made.Gallery, q.Event) {
		return true, nil
	}
	events, err := s.Events(q.Made.Gallery, q.Made.Generation, q.Made.Subject)
	return len(events) > 0, outdated(err)
}}

// widenedState returns the state of a shard as leaderState does. When the shard
// knows only earlier epochs of the gallery, widenedState first tells it to.Epoch.
func (r *Router) widenedState(ctx context.Context, group id.Shard, to shardfsm.Widen) (*shard.Shard, error) {
	s, err := r.leaderState(ctx, group)
	if err == nil && s.Epoch(to.Gallery) < to.Epoch {
		_, err = shardWiden.Run(ctx, r, group, to)
	}
	return s, err
}

// placement is a face to store, and the shard for it.
type placement struct {
	gallery     enrolment
	application metafsm.Application
	home        id.Shard
	subject     id.Subject
	further     bool // a further event of a subject that exists
	write       Write
	face        portrait.Taken
	tags        []uint32
	note        Note
	claimed     uint64 // shardfsm.Register.Claimed
	expires     int64  // in milliseconds since 1970, or 0
}

func (p placement) event() id.Event { return p.gallery.event(p.write.Operation, p.home) }

// put commits a face and the note of its subject. It first claims the note's external
// id, and gives the claim up if the subject gets no note.
func (r *subjectRequests) put(ctx context.Context, p placement) (Registered, error) {
	key, err := r.dataKey(p.gallery.Gallery)
	if err != nil {
		return Registered{}, err
	}
	if p.note.ExternalID == "" {
		return r.putClaimed(ctx, p, key)
	}
	n := nameOf(p.gallery, key, p.note.ExternalID)
	if p.claimed, err = r.claims.claimFor(ctx, n, r.eventWrite(p)); err != nil {
		return Registered{}, err
	}
	out, err := r.putClaimed(ctx, p, key)
	if err != nil {
		r.claims.tidy(ctx, n, p.subject)
	}
	return out, err
}

// putClaimed commits a face. If the application guards its enrolments, putClaimed first
// checks that the gallery does not have the person.
func (r *subjectRequests) putClaimed(ctx context.Context, p placement, key *seal.Key) (Registered, error) {
	ref := faceRef(p.gallery, p.subject, p.event())
	if !p.further {
		p.note = salted(r.groups.Meta(), p.gallery, p.note)
	}
	sealed, note := shard.SealFace(key, ref, p.face.Face), shard.SealNote(key, ref, p.note)
	for range guardRounds {
		a, err := r.commit(ctx, p, sealed, note, p.application.Guard)
		if err != nil {
			return Registered{}, err
		}
		if p.application.Guard && a.Status == shardfsm.Done {
			var found guarded
			if a.RegisterAnswer, found, err = r.activateUnlessKnown(ctx, p, a.Claim); KindOf(err) == Duplicate {
				return found.refused(p), err
			}
			if err != nil {
				return Registered{}, err
			}
			if a.Status == shardfsm.UnknownEvent { // a rival withdrew it
				continue
			}
		}
		if err := r.enrolRefusal(ctx, a.RegisterAnswer, p.home, p.gallery.Tenant, p.write); err != nil {
			return Registered{}, err
		}
		if err := r.stillThere(ctx, p, a.RegisterAnswer); err != nil {
			return Registered{}, err
		}
		return r.registeredAnswer(p.gallery, key, a.RegisterAnswer, p.face)
	}
	return Registered{}, &Error{Kind: Busy, Message: "this person is being enrolled by others; try again", RetryAfter: calls.RetryLater}
}

// stillThere returns the error for a repeated registration without an
// Idempotency-Key whose subject was removed since: an answer with the id of a subject
// that is gone would look like a success. A retry with a key gets its first answer,
// which its client may never have seen.
func (r *subjectRequests) stillThere(ctx context.Context, p placement, a shardfsm.RegisterAnswer) error {
	if a.Status != shardfsm.Replayed || p.write.Keyed || len(a.Sealed) > 0 {
		return nil
	}
	g := p.gallery
	events, err := calls.CallLeader(ctx, r.calls, shardEvents, p.home, eventsQuery{g.ID, g.Generation, a.Subject})
	if err != nil || len(events) > 0 {
		return err
	}
	return deletedSince(ReasonSubjectDeleted, "subject")
}

func (r *subjectRequests) eventWrite(p placement) shardfsm.EventWrite {
	g, w := p.gallery, p.write
	return shardfsm.EventWrite{
		Gallery: g.ID, Generation: g.Generation, Op: w.Operation, Request: w.Request, Keyed: w.Keyed,
		Subject: p.subject, Event: p.event(), Time: time.Now().UnixMilli(), Share: r.share(g.Tenant),
	}
}

// commit proposes a face to its shard. It finds a slot for it when the shard has
// none.
func (r *subjectRequests) commit(ctx context.Context, p placement, sealed, note []byte, pending bool) (registerAnswer, error) {
	g := p.gallery
	return r.withSlot(ctx, g, p.home, func(recycle bool) (registerAnswer, error) {
		c := shardfsm.Register{
			EventWrite: r.eventWrite(p), Tags: p.tags, Sealed: sealed, Recycle: recycle, Pending: pending, Note: note, Claimed: p.claimed, Expires: p.expires,
		}
		if p.further { // on its subject's shard, whatever the epoch
			return calls.CallLeader(ctx, r.calls, shardAdd, p.home, shardfsm.AddEvent{Register: c})
		}
		c.Epoch = g.Epoch
		return calls.CallLeader(ctx, r.calls, shardRegister, p.home, c)
	})
}

// registeredAnswer turns the shard's answer to a write that is done into the client's. A
// retry gets the attributes of the first try while its event lives.
func (r *subjectRequests) registeredAnswer(g enrolment, key *seal.Key, a shardfsm.RegisterAnswer, face portrait.Taken) (Registered, error) {
	out := Registered{Subject: a.Subject, Event: a.Event, Attributes: face.Attributes, Ignored: face.Ignored}
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

// Unregister removes a subject and its events, and returns where the log has this. An unknown
// subject is NotFound; the log has that, too. The subject's shard remembers the outcome of op, which must
// be new.
func (r *subjectRequests) Unregister(ctx context.Context, access Access, subject id.Subject, op id.Operation) (Committed, error) {
	g, _, err := r.enrolmentAt(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return Committed{}, err
	}
	a, err := afterMerges(ctx, func() (removedAnswer, error) {
		return calls.CallLeader(ctx, r.calls, shardUnregister, subject.Shard(), shardfsm.Unregister{
			Gallery: g.ID, Generation: g.Generation, Op: op, Time: time.Now().UnixMilli(), Subject: subject, Share: r.share(g.Tenant),
		})
	})
	if err != nil {
		return Committed{}, err
	}
	if a.Status == shardfsm.Done {
		r.claims.tidy(ctx, named{g, a.External}, subject)
	}
	return Committed{subject.Shard(), a.Applied}, r.removalRefusal(ctx, a.Status, g, subject, Write{Operation: op})
}

// removalRefusal returns the error for the status of a removal, as refusal does. The error for a
// subject that was merged into another one lately names the other one, which has its faces.
func (r *cluster) removalRefusal(ctx context.Context, s shardfsm.Status, g enrolment, subject id.Subject, w Write) error {
	if s != shardfsm.UnknownSubject {
		return r.refusal(ctx, s, subject.Shard(), g.Tenant, w)
	}
	state, err := calls.CallLeader(ctx, r.calls, shardMergeState, subject.Shard(), subject)
	switch {
	case err != nil:
		return err
	case state.Into.IsZero() || state.Gallery != g.ID:
		return subjectNotFound()
	default:
		return Errorf(NotFound, ReasonSubjectMerged, "the subject was merged into another one, which has its faces: %s", state.Into)
	}
}

// operationsFull returns the error for a write that a group has no room to remember. After
// that time there may be room.
func operationsFull(after time.Duration) error {
	return &Error{Kind: Busy, Message: "too many recent writes are remembered; try again later", RetryAfter: after}
}

func keyReused() error {
	return Errorf(InvalidRequest, ReasonKeyReused, "this Idempotency-Key was used with another body; send a new one")
}

// onTime returns a proposed time, or this node's time when the two differ by more
// than clockSkewMax. One wrong clock must not change the times of a shard, so the time
// of this node is that of most nodes.
func (r *cluster) onTime(proposed int64) int64 {
	now := r.clock.Now()
	if off := now.Sub(time.UnixMilli(proposed)).Abs(); off > clockSkewMax {
		return now.UnixMilli()
	}
	return proposed
}
