package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/router"
)

// putSubject serves PUT subjects/{subjectId}: body face, and tags, externalId, userData and
// expires in version 1.1. It replaces the subject's oldest active event (D19).
var putSubject = changes(readEnrolment, by(Writer.UpdateSubject), showRegistered[router.Enrolment](fasthttp.StatusOK), saysEnrolment)

// saysEnrolment has the record of a write to a subject name it.
var saysEnrolment = says[router.Enrolment, router.Registered]{
	asked: func(t *trail, q router.Enrolment) { t.names(q.Subject) },
	told:  func(t *trail, _ router.Enrolment, r router.Registered) { t.registered(r) },
}

// registered notes the outcome of an enrolment.
func (t *trail) registered(r router.Registered) {
	t.names(r.Subject)
	t.quality = r.Attributes.Quality
}

// getEvents serves GET subjects/{subjectId}/events.
var getEvents = reads(subjectOfPath, func(ctx context.Context, c *call, r Reader, subject id.Subject) (router.ActiveEvents, error) {
	return r.Events(ctx, c.access, subject)
}, showEvents, says[id.Subject, router.ActiveEvents]{asked: func(t *trail, subject id.Subject) { t.names(subject) }})

func showEvents(c *call, subject id.Subject, events router.ActiveEvents) answer {
	text := answers.Subject{ID: subject.String(), Events: make([]answers.Event, len(events.List)), Note: c.note(events.Note)}
	for i, e := range events.List {
		text.Events[i] = answers.Event{ID: e.ID.String()}
		if !e.Expires.IsZero() {
			text.Events[i].Expires = wireTime(e.Expires)
		}
	}
	return answer{fasthttp.StatusOK, text}
}

// postEvents serves POST subjects/{subjectId}/events: body face, tags and expires.
var postEvents = changes(readEnrolment, by(Writer.RegisterEvent), showRegistered[router.Enrolment](fasthttp.StatusCreated), saysEnrolment)

// putEvent serves PUT subjects/{subjectId}/events/{eventId}: body face and tags.
// It answers 200 (D20).
var putEvent = changes(func(ctx context.Context, c *call) (e router.Enrolment, err error) {
	event, err := parseEvent(c.parameters[1])
	if err != nil {
		return e, err
	}
	e, err = readEnrolment(ctx, c)
	e.Event = event
	return e, err
}, by(Writer.UpdateEvent), showRegistered[router.Enrolment](fasthttp.StatusOK), saysEnrolment)

// eventOf is an event that a path names.
type eventOf struct {
	subject id.Subject
	event   id.Event
}

// deleteEvent serves DELETE subjects/{subjectId}/events/{eventId}. Its record names the subject only if the
// subject has other events, because the last one's removal is that of the subject (deleteSubject).
var deleteEvent = changes(func(ctx context.Context, c *call) (q eventOf, err error) {
	if q.subject, err = subjectOfPath(ctx, c); err != nil {
		return q, err
	}
	q.event, err = parseEvent(c.parameters[1])
	return q, err
}, func(ctx context.Context, c *call, w Writer, q eventOf) (nothing, error) {
	return nothing{}, w.UnregisterEvent(ctx, c.access, q.subject, q.event, c.requestBytes())
}, showsStatus[eventOf](fasthttp.StatusNoContent), says[eventOf, nothing]{told: func(t *trail, q eventOf, _ nothing) {
	t.named = append(t.named, naming{subject: q.subject, removed: q.event})
}})

// readEnrolment reads a write to the subject that the path names first.
func readEnrolment(ctx context.Context, c *call) (router.Enrolment, error) {
	e := router.Enrolment{Access: c.access}
	if !strings.HasPrefix(c.parameters[0], externalPrefix) {
		// Before the body is read: an unknown id is 404 whatever the body says.
		if _, err := parseSubject(c.parameters[0]); err != nil {
			return e, err
		}
	}
	o, err := readObject(c.body.bytes, "face", "tags", "externalId", "userData", "expires")
	if err != nil {
		return e, err
	}
	var errs [5]error
	if c.version != v1 {
		e.Tags, errs[0] = o.tags()
		e.Note, errs[1] = o.notePatch()
		e.Expires, e.NoExpiry, errs[4] = o.expires()
	}
	e.Write, errs[2] = c.write()
	e.Image, errs[3] = o.image("face")
	if err := firstOf(errs[:]...); err != nil {
		return e, err
	}
	external, named := strings.CutPrefix(c.parameters[0], externalPrefix)
	if named && e.Note.ExternalID != nil && checkTagName("", external) == nil {
		e.Subject, err = c.service.SubjectToRename(ctx, c.access, external, e.Write)
	} else {
		e.Subject, err = subjectOfPath(ctx, c)
	}
	return e, err
}

// showRegistered makes the last step of a registration or an update.
func showRegistered[Q any](status int) func(*call, Q, router.Registered) answer {
	return func(c *call, _ Q, r router.Registered) answer {
		text := answers.Registered{ID: r.Subject.String(), Attributes: wireAttributes(r.Attributes), IgnoredFaces: c.ignored(r.Ignored)}
		if c.version != v1 {
			text.EventID = r.Event.String()
		}
		return answer{status, text}
	}
}

// parseEvent parses an event's id.
func parseEvent(text string) (id.Event, error) {
	u, err := parseID(text, "", "The subject has no event with this id.")
	return id.Event{UUID: u}, err
}
