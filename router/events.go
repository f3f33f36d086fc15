package router

import (
	"context"
	"fmt"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
)

// replaceRounds bounds how often an update seals its face again because another
// write came between.
const replaceRounds = 16

// RegisterEvent enrols a further face of a subject. An unknown subject is
// NotFound; a retry with the same Write gets the first answer.
func (r *subjectRequests) RegisterEvent(ctx context.Context, e Enrolment) (Registered, error) {
	g, app, err := r.located(ctx, e.Access, e.Subject.Shard(), subjectNotFound)
	if err != nil {
		return Registered{}, err
	}
	face, tags, err := r.enrolled(ctx, g, app.MinimumQuality, e.Image, e.Tags)
	if err != nil {
		return Registered{}, err
	}
	return r.put(ctx, placement{
		gallery: g, application: app, home: e.Subject.Shard(), subject: e.Subject, further: true,
		write: e.Write, face: face, tags: tags,
	})
}

// UpdateSubject replaces the face of a subject's oldest active event, whose ids
// stay. An unknown subject is NotFound; a retry with the same Write gets the first
// answer.
func (r *subjectRequests) UpdateSubject(ctx context.Context, e Enrolment) (Registered, error) {
	return r.replace(ctx, e, true)
}

// UpdateEvent replaces the face of an event, as UpdateSubject.
func (r *subjectRequests) UpdateEvent(ctx context.Context, e Enrolment) (Registered, error) {
	return r.replace(ctx, e, false)
}

func (r *subjectRequests) replace(ctx context.Context, e Enrolment, oldest bool) (Registered, error) {
	g, app, err := r.located(ctx, e.Access, e.Subject.Shard(), subjectNotFound)
	if err != nil {
		return Registered{}, err
	}
	face, tags, err := r.enrolled(ctx, g, app.MinimumQuality, e.Image, e.Tags)
	if err != nil {
		return Registered{}, err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return Registered{}, err
	}
	// The seal is bound to the event and its revision, so they are read first. An
	// unknown target is proposed all the same: the write may have been done before,
	// and then its first answer counts.
	target, err := r.target(ctx, g, e, oldest)
	if err != nil {
		return Registered{}, err
	}
	for range replaceRounds {
		ref := faceRef(g, e.Subject, target.Event)
		ref.Revision = target.Revision
		a, err := calls.Ask(ctx, r.calls, shardReplace, e.Subject.Shard(), shardfsm.ReplaceEvent{
			EventWrite: shardfsm.EventWrite{
				Gallery: g.ID, Generation: g.Generation, Op: e.Write.Operation, Request: e.Write.Request, Keyed: e.Write.Keyed,
				Subject: e.Subject, Event: target.Event, Time: time.Now().UnixMilli(),
			},
			Tags: tags, KeepTags: e.Tags == nil, Sealed: shard.SealFace(key, ref, face), Revision: target.Revision, Oldest: oldest,
		})
		if err != nil {
			return Registered{}, err
		}
		if a.Status != shardfsm.Moved {
			return r.registered(g, key, a, face)
		}
		target = shard.Active{Event: a.Event, Revision: a.Revision}
	}
	return Registered{}, &Error{Kind: Busy, Message: "the subject is being updated by others; try again", RetryAfter: calls.RetryLater}
}

// target gives the event to replace and the revision that the replacement makes;
// an unknown one has revision 1, as the first replacement of any event.
func (r *subjectRequests) target(ctx context.Context, g enrolment, e Enrolment, oldest bool) (shard.Active, error) {
	events, err := calls.Ask(ctx, r.calls, shardEvents, e.Subject.Shard(), eventsQuery{g.ID, g.Generation, e.Subject})
	if err != nil {
		return shard.Active{}, err
	}
	for _, a := range events {
		if oldest || a.Event == e.Event {
			return shard.Active{Event: a.Event, Revision: a.Revision + 1}, nil
		}
	}
	return shard.Active{Event: e.Event, Revision: 1}, nil
}

// enrolled gives the one face of an image, good enough to be enrolled, and the
// identities of tags. Unknown tags are told before any work on the face.
func (r *subjectRequests) enrolled(ctx context.Context, g enrolment, qualityMin float64, image []byte, names []string) (engine.Face, []uint32, error) {
	tags, err := r.tags(ctx, g, names)
	if err != nil {
		return engine.Face{}, nil, err
	}
	face, err := r.single(ctx, image, qualityMin)
	return face, tags, err
}

// Events gives the ids of a subject's active events in order of registration. An
// unknown subject is NotFound.
func (r *subjectRequests) Events(ctx context.Context, access Access, subject id.Subject) ([]id.Event, error) {
	g, _, err := r.located(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return nil, err
	}
	events, err := calls.Ask(ctx, r.calls, shardEvents, subject.Shard(), eventsQuery{g.ID, g.Generation, subject})
	if err != nil {
		return nil, err
	}
	if len(events) == 0 {
		return nil, subjectNotFound()
	}
	ids := make([]id.Event, 0, len(events))
	for _, a := range events {
		ids = append(ids, a.Event)
	}
	return ids, nil
}

// UnregisterEvent removes one event; the last one removes its subject. An unknown
// subject, and an event that is not the subject's, are NotFound.
func (r *subjectRequests) UnregisterEvent(ctx context.Context, access Access, subject id.Subject, event id.Event) error {
	g, _, err := r.located(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return err
	}
	var op id.Operation // this call's own, as in Unregister
	mustRandom(op[:])
	a, err := calls.Ask(ctx, r.calls, shardRemove, subject.Shard(), shardfsm.RemoveEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: g.ID, Generation: g.Generation, Op: op,
			Subject: subject, Event: event, Time: time.Now().UnixMilli(),
		},
	})
	if err != nil {
		return err
	}
	return refused(a.Status)
}

// refused gives the error that a shard's refusal of a write is, nil for none.
func refused(s shardfsm.Status) error {
	switch s {
	case shardfsm.Done, shardfsm.Replayed:
		return nil
	case shardfsm.Conflict:
		return keyReused()
	case shardfsm.OpsFull:
		return operationsFull()
	case shardfsm.StaleGeneration:
		return Errorf(Forbidden, "", "Forbidden") // the gallery was deleted
	case shardfsm.Outdated:
		return Errorf(calls.Outdated, "", "the gallery lies on more shards by now")
	case shardfsm.UnknownSubject:
		return subjectNotFound()
	case shardfsm.UnknownEvent:
		return Errorf(NotFound, "", "the subject has no event with this id")
	case shardfsm.NeedSlots:
		return Errorf(InvalidRequest, ReasonGalleryFull, "the gallery is full")
	default:
		return fmt.Errorf("the shard answered: %v", s)
	}
}

// eventsQuery asks for a subject's active events.
type eventsQuery struct {
	Gallery    id.Gallery `cbor:"1,keyasint"`
	Generation uint32     `cbor:"2,keyasint"`
	Subject    id.Subject `cbor:"3,keyasint"`
}

var shardEvents = method[eventsQuery, []shard.Active]{Name: "shard.events", Run: func(ctx context.Context, r *Router, group id.Shard, q eventsQuery) ([]shard.Active, error) {
	s, err := r.read(ctx, group)
	if err != nil {
		return nil, err
	}
	events, err := s.Events(q.Gallery, q.Generation, q.Subject)
	return events, outdated(err)
}}

var shardReplace = method[shardfsm.ReplaceEvent, shardfsm.RegisterAnswer]{Name: "shard.replace", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.ReplaceEvent) (shardfsm.RegisterAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.RegisterAnswer{}, err
	}
	c.Time = onTime(c.Time)
	return propose(ctx, g, shardfsm.ReplaceEventOp, c)
}}

var shardRemove = method[shardfsm.RemoveEvent, shardfsm.UnregisterAnswer]{Name: "shard.remove", Run: func(ctx context.Context, r *Router, group id.Shard, c shardfsm.RemoveEvent) (shardfsm.UnregisterAnswer, error) {
	g, _, err := r.lead(group)
	if err != nil {
		return shardfsm.UnregisterAnswer{}, err
	}
	c.Time = onTime(c.Time)
	return propose(ctx, g, shardfsm.RemoveEventOp, c)
}}
