package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/engine/portrait"
	"facet/internal/id"
	"facet/router"
)

// postGalleries serves POST galleries: a gallery and its first application.
var postGalleries = changes(readNewGallery, func(ctx context.Context, c *call, w Writer, q settings[router.NewGallery]) (router.Gallery, error) {
	return w.CreateGallery(ctx, c.key.Tenant, q.write, q.to)
}, func(c *call, _ settings[router.NewGallery], made router.Gallery) answer {
	text := wireGallery(made)
	c.etag = made.ETag
	if len(made.Applications) > 0 {
		text.APIKey = made.Applications[0].APIKey
	}
	return answer{fasthttp.StatusOK, text}
}, says[settings[router.NewGallery], router.Gallery]{
	asked: func(t *trail, q settings[router.NewGallery]) { t.noteChanges(q.given) },
	told: func(t *trail, _ settings[router.NewGallery], made router.Gallery) {
		t.gallery = made.ID
		if len(made.Applications) > 0 {
			t.application = made.Applications[0].ID
		}
	},
})

// settings are those that a request gives a gallery or an application: the one of the path, or a new one.
type settings[T any] struct {
	of    id.UUID
	to    T
	write router.Write
	given object // what was read for to
}

func readNewGallery(_ context.Context, c *call) (q settings[router.NewGallery], err error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "size", "retentionDays", "subjectTemplates", "photoLink",
		"purpose", "legalGround", "recipients")
	if err != nil {
		return q, err
	}
	g := &q.to
	var errs [11]error
	g.Name, errs[0] = o.name()
	g.Description, errs[1] = o.description()
	g.MinimumQuality, errs[2] = o.quality()
	g.Size, errs[3] = o.size()
	q.write, errs[4] = c.write()
	g.RetentionDays, errs[5] = o.retentionDays()
	g.SubjectTemplates, errs[6] = o.subjectTemplates()
	g.PhotoLink, errs[7] = o.photoLink()
	g.Purpose, errs[8] = o.line("purpose")
	g.LegalGround, errs[9] = o.line("legalGround")
	g.Recipients, errs[10] = o.line("recipients")
	err = q.read(o, errs[:])
	return q, err
}

// read ends the reading of settings: it notes what was given, if nothing is wrong with it.
func (q *settings[T]) read(given object, errs []error) error {
	err := firstOf(errs...)
	if err == nil {
		q.given = given
	}
	return err
}

// getGalleries serves GET galleries.
var getGalleries = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]router.Gallery, error) {
	return r.Galleries(ctx, c.key.Tenant)
}, shows[nothing](wireGalleries), says[nothing, []router.Gallery]{})

func wireGalleries(list []router.Gallery) galleriesBody {
	text := galleriesBody{Galleries: make([]galleryBody, len(list))}
	for i, g := range list {
		text.Galleries[i] = wireGallery(g)
		text.Galleries[i].Count = &list[i].Count
	}
	return text
}

// getGallery serves GET galleries/{galleryId}.
var getGallery = reads(galleryOfPath, func(ctx context.Context, c *call, r Reader, gallery id.Gallery) (router.Gallery, error) {
	return r.Gallery(ctx, c.key.Tenant, gallery)
}, func(c *call, _ id.Gallery, g router.Gallery) answer {
	text := wireGallery(g)
	c.etag = g.ETag
	lines := wireLines(g.Applications)
	text.Count, text.Applications = &g.Count, &lines
	return answer{fasthttp.StatusOK, text}
}, says[id.Gallery, router.Gallery]{})

// patchGallery serves PATCH galleries/{galleryId}. A missing member changes nothing
// (D36).
var patchGallery = changes(readGalleryPatch, func(ctx context.Context, c *call, w Writer, q settings[router.GalleryPatch]) (router.Gallery, error) {
	return w.UpdateGallery(ctx, c.key.Tenant, q.write, id.Gallery{UUID: q.of}, q.to)
}, func(c *call, _ settings[router.GalleryPatch], changed router.Gallery) answer {
	c.etag = changed.ETag
	return answer{fasthttp.StatusOK, wireGallery(changed)}
}, says[settings[router.GalleryPatch], router.Gallery]{
	asked: func(t *trail, q settings[router.GalleryPatch]) { t.noteChanges(q.given) },
})

func readGalleryPatch(ctx context.Context, c *call) (q settings[router.GalleryPatch], err error) {
	gallery, err := galleryOfPath(ctx, c)
	if err != nil {
		return q, err
	}
	q.of = gallery.UUID
	o, err := readObject(c.body.bytes, "name", "description", "size", "retentionDays", "subjectTemplates", "photoLink",
		"purpose", "legalGround", "recipients")
	if err != nil {
		return q, err
	}
	p := &q.to
	var errs [11]error
	p.RetentionDays, errs[4] = present(o, "retentionDays", o.retentionDays)
	p.SubjectTemplates, errs[5] = present(o, "subjectTemplates", o.subjectTemplates)
	p.PhotoLink, errs[6] = present(o, "photoLink", o.photoLink)
	p.Purpose, errs[7] = present(o, "purpose", func() (string, error) { return o.line("purpose") })
	p.LegalGround, errs[8] = present(o, "legalGround", func() (string, error) { return o.line("legalGround") })
	p.Recipients, errs[9] = present(o, "recipients", func() (string, error) { return o.line("recipients") })
	p.Name, errs[0] = present(o, "name", o.name)
	p.Description, errs[1] = present(o, "description", o.description)
	p.Size, errs[2] = present(o, "size", o.size)
	q.write, errs[3] = c.write()
	p.IfMatch, errs[10] = c.ifMatch()
	err = q.read(o, errs[:])
	return q, err
}

// deleteGallery serves DELETE galleries/{galleryId}. It also deletes the gallery's
// applications.
var deleteGallery = changes(galleryOfPath, func(ctx context.Context, c *call, w Writer, gallery id.Gallery) (nothing, error) {
	return nothing{}, w.DeleteGallery(ctx, c.key.Tenant, gallery)
}, showsStatus[id.Gallery](fasthttp.StatusNoContent), says[id.Gallery, nothing]{})

// postApplications serves POST applications.
var postApplications = changes(readNewApplication, func(ctx context.Context, c *call, w Writer, q settings[router.NewApplication]) (router.Application, error) {
	return w.CreateApplication(ctx, c.key.Tenant, q.write, q.to)
}, showApplication[settings[router.NewApplication]], says[settings[router.NewApplication], router.Application]{
	asked: func(t *trail, q settings[router.NewApplication]) {
		t.gallery = q.to.Gallery
		t.noteChanges(q.given)
	},
	told: func(t *trail, _ settings[router.NewApplication], made router.Application) { t.application = made.ID },
})

func showApplication[Q any](c *call, _ Q, a router.Application) answer {
	c.etag = a.ETag
	return answer{fasthttp.StatusOK, wireApplication(a)}
}

func readNewApplication(_ context.Context, c *call) (q settings[router.NewApplication], err error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "galleryId",
		"verifyThreshold", "enrolmentGuard", "enrolmentGuardThreshold", "multipleFaces", "reviewThreshold", "reviewVerdicts", "reviewDays",
		"searchThresholdMin", "searchLimitMax")
	if err != nil {
		return q, err
	}
	a := &q.to
	var errs [14]error
	a.Name, errs[0] = o.name()
	a.Description, errs[1] = o.description()
	a.MinimumQuality, errs[2] = o.quality()
	a.VerifyThreshold, errs[3] = o.verifyThreshold()
	a.Guard, errs[4] = o.guard()
	a.GuardThreshold, errs[5] = o.guardThreshold()
	a.Gallery, errs[6] = o.gallery()
	q.write, errs[7] = c.write()
	a.MultipleFaces, errs[8] = o.multipleFaces()
	a.ReviewThreshold, errs[9] = o.reviewThreshold()
	a.ReviewVerdicts, errs[10] = o.reviewVerdicts()
	a.ReviewDays, errs[11] = o.reviewDays()
	a.SearchThresholdMin, errs[12] = o.searchThresholdMin()
	a.SearchLimitMax, errs[13] = o.searchLimitMax()
	err = q.read(o, errs[:])
	return q, err
}

// getApplications serves GET applications.
var getApplications = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]router.Application, error) {
	return r.Applications(ctx, c.key.Tenant)
}, shows[nothing](func(list []router.Application) applicationsBody { return applicationsBody{wireLines(list)} }), says[nothing, []router.Application]{})

// getApplication serves GET applications/{applicationId}.
var getApplication = reads(applicationOfPath, func(ctx context.Context, c *call, r Reader, application id.Application) (router.Application, error) {
	return r.Application(ctx, c.key.Tenant, application)
}, showApplication[id.Application], says[id.Application, router.Application]{
	told: func(t *trail, _ id.Application, a router.Application) { t.gallery = a.Gallery },
})

// patchApplication serves PATCH applications/{applicationId}. A missing member
// changes nothing (D36).
var patchApplication = changes(readApplicationPatch, func(ctx context.Context, c *call, w Writer, q settings[router.ApplicationPatch]) (router.Application, error) {
	return w.UpdateApplication(ctx, c.key.Tenant, q.write, id.Application{UUID: q.of}, q.to)
}, showApplication[settings[router.ApplicationPatch]], says[settings[router.ApplicationPatch], router.Application]{
	asked: func(t *trail, q settings[router.ApplicationPatch]) { t.noteChanges(q.given) },
	told: func(t *trail, _ settings[router.ApplicationPatch], changed router.Application) {
		t.gallery = changed.Gallery
	},
})

func readApplicationPatch(ctx context.Context, c *call) (q settings[router.ApplicationPatch], err error) {
	application, err := applicationOfPath(ctx, c)
	if err != nil {
		return q, err
	}
	q.of = application.UUID
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore",
		"verifyThreshold", "enrolmentGuard", "enrolmentGuardThreshold", "multipleFaces", "reviewThreshold", "reviewVerdicts", "reviewDays",
		"searchThresholdMin", "searchLimitMax")
	if err != nil {
		return q, err
	}
	p := &q.to
	var errs [14]error
	p.Name, errs[0] = present(o, "name", o.name)
	p.Description, errs[1] = present(o, "description", o.description)
	p.MinimumQuality, errs[2] = present(o, "faceMinimumQualityScore", o.quality)
	p.VerifyThreshold, errs[3] = present(o, "verifyThreshold", o.verifyThreshold)
	p.Guard, errs[4] = present(o, "enrolmentGuard", o.guard)
	p.GuardThreshold, errs[5] = present(o, "enrolmentGuardThreshold", o.guardThreshold)
	q.write, errs[6] = c.write()
	p.MultipleFaces, errs[7] = present(o, "multipleFaces", o.multipleFaces)
	p.ReviewThreshold, errs[8] = present(o, "reviewThreshold", o.reviewThreshold)
	p.ReviewVerdicts, errs[9] = present(o, "reviewVerdicts", o.reviewVerdicts)
	p.ReviewDays, errs[10] = present(o, "reviewDays", o.reviewDays)
	p.SearchThresholdMin, errs[11] = present(o, "searchThresholdMin", o.searchThresholdMin)
	p.SearchLimitMax, errs[12] = present(o, "searchLimitMax", o.searchLimitMax)
	p.IfMatch, errs[13] = c.ifMatch()
	err = q.read(o, errs[:])
	return q, err
}

// deleteApplication serves DELETE applications/{applicationId}.
var deleteApplication = changes(applicationOfPath, func(ctx context.Context, c *call, w Writer, application id.Application) (nothing, error) {
	return nothing{}, w.DeleteApplication(ctx, c.key.Tenant, application)
}, showsStatus[id.Application](fasthttp.StatusNoContent), says[id.Application, nothing]{})

// galleryOfPath returns the id of the gallery that the path names.
func galleryOfPath(_ context.Context, c *call) (id.Gallery, error) {
	u, err := parseID(c.parameters[0], "", "There is no gallery with this id.")
	return id.Gallery{UUID: u}, err
}

// applicationOfPath returns the id of the application that the path names.
func applicationOfPath(_ context.Context, c *call) (id.Application, error) {
	u, err := parseID(c.parameters[0], "", "There is no application with this id.")
	return id.Application{UUID: u}, err
}

// present reads the member name of o. It returns nil when the member is missing.
func present[T any](o object, name string, read func() (T, error)) (*T, error) {
	if _, ok := o[name]; !ok {
		return nil, nil
	}
	value, err := read()
	if err != nil {
		return nil, err
	}
	return &value, nil
}

// name reads the required name of a gallery or application.
func (o object) name() (string, error) {
	name, ok, err := o.text("name", nameMax)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", missing("name")
	case strings.TrimSpace(name) == "":
		return "", invalid("", "name must not be empty.")
	case strings.ContainsFunc(name, isControl):
		return "", invalid("", "name must have no control characters.")
	}
	return name, nil
}

// description reads the description of a gallery or application. A missing one is
// empty.
func (o object) description() (string, error) {
	text, _, err := o.text("description", descriptionMax)
	if err == nil && strings.ContainsFunc(text, func(r rune) bool { return isControl(r) && r != '\t' && r != '\n' }) {
		err = invalid("", "description must have no control characters but tab and line feed.")
	}
	return text, err
}

// line reads a text of a gallery for the record of processing. A missing one is empty.
func (o object) line(name string) (string, error) {
	text, _, err := o.text(name, lineMax)
	if err == nil && strings.ContainsFunc(text, isControl) {
		err = invalid("", name+" must have no control characters.")
	}
	return text, err
}

// quality reads the required minimum quality of an application.
func (o object) quality() (float64, error) {
	return o.number("faceMinimumQualityScore", router.QualityMin, 1)
}

// searchThresholdMin reads the lowest threshold of an application's searches. 0 is no bound.
func (o object) searchThresholdMin() (int, error) {
	return o.integer("searchThresholdMin", bounds{0, router.ThresholdMax}, 0)
}

// searchLimitMax reads the largest limit of an application's searches. 0 is no bound.
func (o object) searchLimitMax() (int, error) {
	return o.integer("searchLimitMax", bounds{0, router.SearchLimitMax}, 0)
}

// verifyThreshold reads the verify threshold of an application.
func (o object) verifyThreshold() (int, error) {
	return o.integer("verifyThreshold", bounds{0, router.ThresholdMax}, router.ThresholdDefault)
}

// guard reads whether an application guards its enrolments.
func (o object) guard() (bool, error) { return o.boolean("enrolmentGuard") }

// subjectTemplates reads whether the subjects of a gallery have templates of their own.
func (o object) subjectTemplates() (bool, error) { return o.boolean("subjectTemplates") }

// guardThreshold reads the threshold of an application's guard.
func (o object) guardThreshold() (int, error) {
	return o.integer("enrolmentGuardThreshold", bounds{0, router.ThresholdMax}, router.ThresholdDefault)
}

// multipleFaces reads what an application does with a photo of several faces.
func (o object) multipleFaces() (portrait.Rule, error) {
	text, ok, err := o.text("multipleFaces", len(facesDominant))
	switch {
	case err == nil && (!ok || text == facesRefuse):
		return portrait.Refuse, nil
	case err == nil && text == facesDominant:
		return portrait.Dominant, nil
	}
	return 0, invalid("", "multipleFaces must be refuse or dominant.")
}

// size reads the required size of a gallery.
func (o object) size() (int, error) {
	if _, ok := o["size"]; !ok {
		return 0, missing("size")
	}
	return o.integer("size", bounds{1, router.GallerySizeMax}, 0)
}

// gallery reads the required id of a gallery. A malformed id counts as unknown.
func (o object) gallery() (id.Gallery, error) {
	text, ok, err := o.text("galleryId", pathIDMax)
	if err != nil {
		return id.Gallery{}, err
	}
	if !ok {
		return id.Gallery{}, missing("galleryId")
	}
	u, err := id.Parse(text)
	if err != nil {
		return id.Gallery{}, invalid(router.ReasonUnknownGallery, "There is no gallery with this galleryId.")
	}
	return id.Gallery{UUID: u}, nil
}
