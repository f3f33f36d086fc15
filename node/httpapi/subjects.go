package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// postSubjects serves POST subjects: body face, and tags, externalId, userData and expires in
// version 1.1. Its records name whom the enrolment guard found.
var postSubjects = changes(parsed(readRegistration), by(Writer.Register), showRegistered[router.Registration](fasthttp.StatusCreated),
	says[router.Registration, router.Registered]{told: func(t *trail, q router.Registration, r router.Registered) {
		if r.Known == nil {
			t.registered(r)
			return
		}
		t.photos = router.Probe{q.Image}
		t.asks(r.Known.Threshold, 1)
		t.went(r.Known.Searched, r.Attributes)
		t.named = append(t.named, naming{subject: r.Subject, known: true, score: r.Known.Score})
	}})

// readRegistration reads the body of a registration.
func readRegistration(c *call) (router.Registration, error) {
	r := router.Registration{Access: c.access}
	o, err := readObject(c.body.bytes, "face", "tags", "externalId", "userData", "expires")
	if err != nil {
		return r, err
	}
	var errs [5]error
	if c.version != v1 {
		r.Tags, errs[0] = o.tags()
		r.Note, errs[1] = o.note()
		r.Expires, _, errs[4] = o.expires()
	}
	r.Write, errs[2] = c.write()
	r.Image, errs[3] = o.image("face")
	return r, firstOf(errs[:]...)
}

// deleteSubject serves DELETE subjects/{subjectId}. Its records don't name the subject: the request id stands
// beside the subject's id in the receipt of an erasure.
var deleteSubject = changes(subjectOfPath, func(ctx context.Context, c *call, w Writer, subject id.Subject) (_ nothing, err error) {
	c.committed, err = w.Unregister(ctx, c.access, subject, c.requestBytes())
	return nothing{}, err
}, showsStatus[id.Subject](fasthttp.StatusNoContent), says[id.Subject, nothing]{})

// subjectOfPath returns the subject that the path names.
func subjectOfPath(ctx context.Context, c *call) (id.Subject, error) {
	return c.subject(ctx, c.parameters[0])
}

// subject returns the subject that text names, by its id or, in version 1.1, by its external
// id.
func (c *call) subject(ctx context.Context, text string) (id.Subject, error) {
	external, ok := strings.CutPrefix(text, externalPrefix)
	if !ok || c.version == v1 {
		return parseSubject(text)
	}
	if checkTagName("", external) != nil {
		return id.Subject{}, notFound(router.ReasonSubjectNotFound, "There is no subject with this externalId.")
	}
	return c.service.SubjectWith(ctx, c.access, external)
}

// parseSubject parses a subject's id.
func parseSubject(text string) (id.Subject, error) {
	u, err := parseID(text, router.ReasonSubjectNotFound, "There is no subject with this id.")
	return id.Subject{UUID: u}, err
}

// parseID parses an id in a path. A malformed id can't exist, so it gets the same 404
// as an unknown one (D10).
func parseID(text, reason, message string) (id.UUID, error) {
	u, err := id.Parse(text)
	if err != nil {
		return u, notFound(reason, message)
	}
	return u, nil
}
