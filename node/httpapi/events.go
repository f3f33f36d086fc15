package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// putSubject serves PUT subjects/{subjectId}: body face, and tags, externalId, userData and
// expires in version 1.1. It replaces the subject's oldest active event (D19).
func putSubject(ctx context.Context, c *call) (answer, error) {
	e, err := c.enrolment(ctx)
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	updated, err := service.UpdateSubject(ctx, e)
	return c.registered(fasthttp.StatusOK, updated, err)
}

// getEvents serves GET subjects/{subjectId}/events.
func getEvents(ctx context.Context, c *call) (answer, error) {
	subject, err := c.subject(ctx, c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	events, err := c.service.Events(ctx, c.access, subject)
	if err != nil {
		return answer{}, err
	}
	text := eventsBody{ID: subject.String(), Events: make([]eventBody, len(events.List)), noteBody: c.note(events.Note)}
	for i, e := range events.List {
		text.Events[i] = eventBody{ID: e.ID.String()}
		if !e.Expires.IsZero() {
			text.Events[i].Expires = wireTime(e.Expires)
		}
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// postEvents serves POST subjects/{subjectId}/events: body face, tags and expires.
func postEvents(ctx context.Context, c *call) (answer, error) {
	e, err := c.enrolment(ctx)
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	registered, err := service.RegisterEvent(ctx, e)
	return c.registered(fasthttp.StatusCreated, registered, err)
}

// putEvent serves PUT subjects/{subjectId}/events/{eventId}: body face and tags.
// It answers 200 (D20).
func putEvent(ctx context.Context, c *call) (answer, error) {
	event, err := parseEvent(c.parameters[1])
	if err != nil {
		return answer{}, err
	}
	e, err := c.enrolment(ctx)
	if err != nil {
		return answer{}, err
	}
	e.Event = event
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	updated, err := service.UpdateEvent(ctx, e)
	return c.registered(fasthttp.StatusOK, updated, err)
}

// deleteEvent serves DELETE subjects/{subjectId}/events/{eventId}. Its record names the subject only if the
// subject has other events, because the last one's removal is that of the subject (deleteSubject).
func deleteEvent(ctx context.Context, c *call) (answer, error) {
	subject, err := c.findSubject(ctx, c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	event, err := parseEvent(c.parameters[1])
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	err = service.UnregisterEvent(ctx, c.access, subject, event, id.Operation(c.requestBytes()))
	c.nameSurvivor(subject, event)
	return answer{status: fasthttp.StatusNoContent}, err
}

// enrolment reads a write to the subject that the path names first.
func (c *call) enrolment(ctx context.Context) (router.Enrolment, error) {
	e := router.Enrolment{Access: c.access}
	var err error
	if !strings.HasPrefix(c.parameters[0], externalPrefix) {
		// Before the body is read: an unknown id is 404 whatever the body says.
		if e.Subject, err = parseSubject(c.parameters[0]); err != nil {
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
		if e.Subject, err = c.service.SubjectToRename(ctx, c.access, external, e.Write); err == nil {
			err = c.name(ctx, e.Subject)
		}
	} else {
		e.Subject, err = c.subject(ctx, c.parameters[0])
	}
	return e, err
}

// registered returns the answer to a registration or update that ended in r or err.
func (c *call) registered(status int, r router.Registered, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	c.trail.named = append(c.trail.named, r.Subject)
	c.trail.quality = r.Attributes.Quality
	text := registeredBody{ID: r.Subject.String(), Attributes: wireAttributes(r.Attributes), Ignored: c.ignored(r.Ignored)}
	if c.version != v1 {
		text.EventID = r.Event.String()
	}
	return answer{status, text}, nil
}

// parseEvent parses an event's id.
func parseEvent(text string) (id.Event, error) {
	u, err := parseID(text, "", "The subject has no event with this id.")
	return id.Event{UUID: u}, err
}
