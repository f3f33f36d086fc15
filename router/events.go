package router

import (
	"context"
	"fmt"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router/calls"
	"facet/shard"
)

// replaceRounds is the most times that an update seals its face again because
// another write changed the subject meanwhile.
const replaceRounds = 16

// RegisterEvent adds a face to a subject. The error is NotFound for an unknown
// subject. A retry with the same Write gets the first answer.
func (r *subjectRequests) RegisterEvent(ctx context.Context, e Enrolment) (Registered, error) {
	g, app, err := r.enrolmentAt(ctx, e.Access, e.Subject.Shard(), subjectNotFound)
	if err != nil {
		return Registered{}, err
	}
	face, tags, err := r.extractEnrolment(ctx, g, e.Subject.Shard(), app.MinimumQuality, e.registration())
	if err != nil {
		return Registered{}, err
	}
	return r.put(ctx, placement{
		gallery: g, application: app, home: e.Subject.Shard(), subject: e.Subject, further: true,
		write: e.Write, face: face, tags: tags,
	})
}

// UpdateSubject replaces the face of a subject's oldest active event. The ids of
// subject and event stay. The error is NotFound for an unknown subject. A retry
// with the same Write gets the first answer.
func (r *subjectRequests) UpdateSubject(ctx context.Context, e Enrolment) (Registered, error) {
	return r.replace(ctx, e, true)
}

// UpdateEvent replaces the face of one event, in the way of UpdateSubject.
func (r *subjectRequests) UpdateEvent(ctx context.Context, e Enrolment) (Registered, error) {
	return r.replace(ctx, e, false)
}

func (r *subjectRequests) replace(ctx context.Context, e Enrolment, oldest bool) (Registered, error) {
	g, app, err := r.enrolmentAt(ctx, e.Access, e.Subject.Shard(), subjectNotFound)
	if err != nil {
		return Registered{}, err
	}
	face, tags, err := r.extractEnrolment(ctx, g, e.Subject.Shard(), app.MinimumQuality, e.registration())
	if err != nil {
		return Registered{}, err
	}
	key, err := r.dataKey(g.Gallery)
	if err != nil {
		return Registered{}, err
	}
	// The seal is bound to the event and its revision, so these are read first. An
	// unknown target is proposed too: this may be a retry, which gets its first
	// answer.
	target, err := r.target(ctx, g, e, oldest)
	if err != nil {
		return Registered{}, err
	}
	for range replaceRounds {
		ref := faceRef(g, e.Subject, target.Event)
		ref.Revision = target.Revision
		a, err := calls.CallLeader(ctx, r.calls, shardReplace, e.Subject.Shard(), shardfsm.ReplaceEvent{
			EventWrite: shardfsm.EventWrite{
				Gallery: g.ID, Generation: g.Generation, Op: e.Write.Operation, Request: e.Write.Request, Keyed: e.Write.Keyed,
				Subject: e.Subject, Event: target.Event, Time: time.Now().UnixMilli(), Share: r.share(g.Tenant),
			},
			Tags: tags, KeepTags: e.Tags == nil, Sealed: shard.SealFace(key, ref, face), Revision: target.Revision, Oldest: oldest,
		})
		if err != nil {
			return Registered{}, err
		}
		if a.Status != shardfsm.Moved {
			if err := r.refusal(ctx, a.Status, e.Subject.Shard(), g.Tenant, e.Write); err != nil {
				return Registered{}, err
			}
			return r.registeredAnswer(g, key, a, face)
		}
		target = shard.Active{Event: a.Event, Revision: a.Revision}
	}
	return Registered{}, &Error{Kind: Busy, Message: "the subject is being updated by others; try again", RetryAfter: calls.RetryLater}
}

// target returns the event to replace, and the revision after the replacement. For
// an unknown event it returns revision 1, as for the first replacement of any
// event.
func (r *subjectRequests) target(ctx context.Context, g enrolment, e Enrolment, oldest bool) (shard.Active, error) {
	events, err := calls.CallLeader(ctx, r.calls, shardEvents, e.Subject.Shard(), eventsQuery{g.ID, g.Generation, e.Subject})
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

// extractEnrolment extracts the one face of an image and finds the identities of
// tags. The face must have at least the quality qualityMin. Unknown tags, and a write
// that the shard has no room to remember, are refused before any work on the image.
func (r *subjectRequests) extractEnrolment(ctx context.Context, g enrolment, at id.Shard, qualityMin float64, reg Registration) (engine.Face, []uint32, error) {
	tags, err := r.tags(ctx, g, reg.Tags)
	if err != nil {
		return engine.Face{}, nil, err
	}
	if err := r.room(ctx, at, g.Tenant, reg.Write); err != nil {
		return engine.Face{}, nil, err
	}
	face, err := r.single(ctx, reg.Image, qualityMin)
	return face, tags, err
}

// Events returns the ids of a subject's active events in order of registration. The
// error is NotFound for an unknown subject.
func (r *subjectRequests) Events(ctx context.Context, access Access, subject id.Subject) ([]id.Event, error) {
	g, _, err := r.enrolmentAt(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return nil, err
	}
	events, err := calls.CallLeader(ctx, r.calls, shardEvents, subject.Shard(), eventsQuery{g.ID, g.Generation, subject})
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

// UnregisterEvent removes one event. Removing the last one removes the subject. The
// error is NotFound for an unknown subject, and for an event of another subject.
func (r *subjectRequests) UnregisterEvent(ctx context.Context, access Access, subject id.Subject, event id.Event) error {
	g, _, err := r.enrolmentAt(ctx, access, subject.Shard(), subjectNotFound)
	if err != nil {
		return err
	}
	var op id.Operation // as in Unregister
	mustRandom(op[:])
	a, err := calls.CallLeader(ctx, r.calls, shardRemove, subject.Shard(), shardfsm.RemoveEvent{
		EventWrite: shardfsm.EventWrite{
			Gallery: g.ID, Generation: g.Generation, Op: op,
			Subject: subject, Event: event, Time: time.Now().UnixMilli(), Share: r.share(g.Tenant),
		},
	})
	if err != nil {
		return err
	}
	return r.refusal(ctx, a.Status, subject.Shard(), g.Tenant, Write{Operation: op})
}

// writeError returns the error for a status with which a shard refuses a write, and
// nil for success.
func writeError(s shardfsm.Status) error {
	switch s {
	case shardfsm.Done, shardfsm.Replayed:
		return nil
	case shardfsm.Conflict:
		return keyReused()
	case shardfsm.OpsFull:
		return operationsFull(forgetRetry)
	case shardfsm.OverWrites:
		return overQuota(metafsm.QuotaWrites, forgetRetry)
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

var shardEvents = shardRead("shard.events", func(_ context.Context, _ *Router, s *shard.Shard, q eventsQuery) ([]shard.Active, error) {
	return s.Events(q.Gallery, q.Generation, q.Subject)
})

var shardReplace = shardCommand("shard.replace", shardfsm.ReplaceEventOp, func(c *shardfsm.ReplaceEvent) { c.Time = onTime(c.Time) })

var shardRemove = shardCommand("shard.remove", shardfsm.RemoveEventOp, func(c *shardfsm.RemoveEvent) { c.Time = onTime(c.Time) })
