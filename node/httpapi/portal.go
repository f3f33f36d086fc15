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
func postGalleries(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "size", "retentionDays", "subjectTemplates", "photoLink",
		"purpose", "legalGround", "recipients")
	if err != nil {
		return answer{}, err
	}
	var g router.NewGallery
	var w router.Write
	var errs [11]error
	g.Name, errs[0] = o.name()
	g.Description, errs[1] = o.description()
	g.MinimumQuality, errs[2] = o.quality()
	g.Size, errs[3] = o.size()
	w, errs[4] = c.write()
	g.RetentionDays, errs[5] = o.retentionDays()
	g.SubjectTemplates, errs[6] = o.subjectTemplates()
	g.PhotoLink, errs[7] = o.photoLink()
	g.Purpose, errs[8] = o.line("purpose")
	g.LegalGround, errs[9] = o.line("legalGround")
	g.Recipients, errs[10] = o.line("recipients")
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	c.trail.noteChanges(o)
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	made, err := service.CreateGallery(ctx, c.key.Tenant, w, g)
	if err != nil {
		return answer{}, err
	}
	text := wireGallery(made)
	c.etag = made.ETag
	c.trail.gallery = made.ID
	if len(made.Applications) > 0 {
		c.trail.application = made.Applications[0].ID
		text.APIKey = made.Applications[0].APIKey
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// getGalleries serves GET galleries.
func getGalleries(ctx context.Context, c *call) (answer, error) {
	list, err := c.service.Galleries(ctx, c.key.Tenant)
	if err != nil {
		return answer{}, err
	}
	text := galleriesBody{Galleries: make([]galleryBody, len(list))}
	for i, g := range list {
		text.Galleries[i] = wireGallery(g)
		text.Galleries[i].Count = &list[i].Count
	}
	return answer{fasthttp.StatusOK, text}, nil
}

// getGallery serves GET galleries/{galleryId}.
func getGallery(ctx context.Context, c *call) (answer, error) {
	gallery, err := parseGallery(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	g, err := c.service.Gallery(ctx, c.key.Tenant, gallery)
	if err != nil {
		return answer{}, err
	}
	text := wireGallery(g)
	c.etag = g.ETag
	lines := wireLines(g.Applications)
	text.Count, text.Applications = &g.Count, &lines
	return answer{fasthttp.StatusOK, text}, nil
}

// patchGallery serves PATCH galleries/{galleryId}. A missing member changes nothing
// (D36).
func patchGallery(ctx context.Context, c *call) (answer, error) {
	gallery, err := parseGallery(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	o, err := readObject(c.body.bytes, "name", "description", "size", "retentionDays", "subjectTemplates", "photoLink",
		"purpose", "legalGround", "recipients")
	if err != nil {
		return answer{}, err
	}
	var p router.GalleryPatch
	var w router.Write
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
	w, errs[3] = c.write()
	p.IfMatch, errs[10] = c.ifMatch()
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	c.trail.noteChanges(o)
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	changed, err := service.UpdateGallery(ctx, c.key.Tenant, w, gallery, p)
	c.etag = changed.ETag
	return answer{fasthttp.StatusOK, wireGallery(changed)}, err
}

// deleteGallery serves DELETE galleries/{galleryId}. It also deletes the gallery's
// applications.
func deleteGallery(ctx context.Context, c *call) (answer, error) {
	gallery, err := parseGallery(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusNoContent}, service.DeleteGallery(ctx, c.key.Tenant, gallery)
}

// postApplications serves POST applications.
func postApplications(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "galleryId",
		"verifyThreshold", "enrolmentGuard", "enrolmentGuardThreshold", "multipleFaces", "reviewThreshold", "reviewVerdicts", "reviewDays",
		"searchThresholdMin", "searchLimitMax")
	if err != nil {
		return answer{}, err
	}
	var a router.NewApplication
	var w router.Write
	var errs [14]error
	a.Name, errs[0] = o.name()
	a.Description, errs[1] = o.description()
	a.MinimumQuality, errs[2] = o.quality()
	a.VerifyThreshold, errs[3] = o.verifyThreshold()
	a.Guard, errs[4] = o.guard()
	a.GuardThreshold, errs[5] = o.guardThreshold()
	a.Gallery, errs[6] = o.gallery()
	w, errs[7] = c.write()
	a.MultipleFaces, errs[8] = o.multipleFaces()
	a.ReviewThreshold, errs[9] = o.reviewThreshold()
	a.ReviewVerdicts, errs[10] = o.reviewVerdicts()
	a.ReviewDays, errs[11] = o.reviewDays()
	a.SearchThresholdMin, errs[12] = o.searchThresholdMin()
	a.SearchLimitMax, errs[13] = o.searchLimitMax()
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	c.trail.gallery = a.Gallery
	c.trail.noteChanges(o)
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	made, err := service.CreateApplication(ctx, c.key.Tenant, w, a)
	c.trail.application, c.etag = made.ID, made.ETag
	return answer{fasthttp.StatusOK, wireApplication(made)}, err
}

// getApplications serves GET applications.
func getApplications(ctx context.Context, c *call) (answer, error) {
	list, err := c.service.Applications(ctx, c.key.Tenant)
	return answer{fasthttp.StatusOK, applicationsBody{wireLines(list)}}, err
}

// getApplication serves GET applications/{applicationId}.
func getApplication(ctx context.Context, c *call) (answer, error) {
	application, err := parseApplication(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	a, err := c.service.Application(ctx, c.key.Tenant, application)
	c.trail.gallery, c.etag = a.Gallery, a.ETag
	return answer{fasthttp.StatusOK, wireApplication(a)}, err
}

// patchApplication serves PATCH applications/{applicationId}. A missing member
// changes nothing (D36).
func patchApplication(ctx context.Context, c *call) (answer, error) {
	application, err := parseApplication(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore",
		"verifyThreshold", "enrolmentGuard", "enrolmentGuardThreshold", "multipleFaces", "reviewThreshold", "reviewVerdicts", "reviewDays",
		"searchThresholdMin", "searchLimitMax")
	if err != nil {
		return answer{}, err
	}
	var p router.ApplicationPatch
	var w router.Write
	var errs [14]error
	p.Name, errs[0] = present(o, "name", o.name)
	p.Description, errs[1] = present(o, "description", o.description)
	p.MinimumQuality, errs[2] = present(o, "faceMinimumQualityScore", o.quality)
	p.VerifyThreshold, errs[3] = present(o, "verifyThreshold", o.verifyThreshold)
	p.Guard, errs[4] = present(o, "enrolmentGuard", o.guard)
	p.GuardThreshold, errs[5] = present(o, "enrolmentGuardThreshold", o.guardThreshold)
	w, errs[6] = c.write()
	p.MultipleFaces, errs[7] = present(o, "multipleFaces", o.multipleFaces)
	p.ReviewThreshold, errs[8] = present(o, "reviewThreshold", o.reviewThreshold)
	p.ReviewVerdicts, errs[9] = present(o, "reviewVerdicts", o.reviewVerdicts)
	p.ReviewDays, errs[10] = present(o, "reviewDays", o.reviewDays)
	p.SearchThresholdMin, errs[11] = present(o, "searchThresholdMin", o.searchThresholdMin)
	p.SearchLimitMax, errs[12] = present(o, "searchLimitMax", o.searchLimitMax)
	p.IfMatch, errs[13] = c.ifMatch()
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	c.trail.noteChanges(o)
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	changed, err := service.UpdateApplication(ctx, c.key.Tenant, w, application, p)
	c.trail.gallery, c.etag = changed.Gallery, changed.ETag
	return answer{fasthttp.StatusOK, wireApplication(changed)}, err
}

// ifMatch reads the header If-Match. It returns the ETag that the settings must have, or
// nothing if any will do.
func (h *head) ifMatch() (string, error) {
	text, ok := h.header("if-match")
	if !ok || text == "*" {
		return "", nil
	}
	tag, quoted := strings.CutPrefix(text, `"`)
	tag, ended := strings.CutSuffix(tag, `"`)
	if !quoted || !ended || tag == "" || len(tag) > etagMax || strings.Contains(tag, `"`) {
		return "", invalid("", `If-Match must be one strong ETag in quotation marks, as an answer has it, or *.`)
	}
	return tag, nil
}

// unconditional reports whether the request has an If-Match that its operation ignores.
func (h *head) unconditional() bool {
	_, given := h.header("if-match")
	return given && h.method != fasthttp.MethodPatch
}

// deleteApplication serves DELETE applications/{applicationId}.
func deleteApplication(ctx context.Context, c *call) (answer, error) {
	application, err := parseApplication(c.parameters[0])
	if err != nil {
		return answer{}, err
	}
	service, err := c.intend()
	if err != nil {
		return answer{}, err
	}
	return answer{status: fasthttp.StatusNoContent}, service.DeleteApplication(ctx, c.key.Tenant, application)
}

// parseGallery parses a gallery's id.
func parseGallery(text string) (id.Gallery, error) {
	u, err := parseID(text, "", "There is no gallery with this id.")
	return id.Gallery{UUID: u}, err
}

// parseApplication parses an application's id.
func parseApplication(text string) (id.Application, error) {
	u, err := parseID(text, "", "There is no application with this id.")
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

// The values of multipleFaces.
const (
	facesRefuse   = "refuse"
	facesDominant = "dominant"
)

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
