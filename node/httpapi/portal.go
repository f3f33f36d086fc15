package httpapi

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/internal/id"
	"facet/router"
)

// postGalleries serves POST galleries: a gallery and its first application.
func postGalleries(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "size")
	if err != nil {
		return answer{}, err
	}
	var g router.NewGallery
	var w router.Write
	var errs [5]error
	g.Name, errs[0] = o.name()
	g.Description, _, errs[1] = o.text("description", descriptionMax)
	g.MinimumQuality, errs[2] = o.number("faceMinimumQualityScore", router.QualityMin, 1)
	g.Size, errs[3] = o.size()
	w, errs[4] = c.write()
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	made, err := c.service.CreateGallery(ctx, c.key.Tenant, w, g)
	if err != nil {
		return answer{}, err
	}
	text := wireGallery(made)
	if len(made.Applications) > 0 {
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
	u, err := id.Parse(c.parameters[0])
	if err != nil {
		return answer{}, notFound("", "Gallery not found.")
	}
	g, err := c.service.Gallery(ctx, c.key.Tenant, id.Gallery{UUID: u})
	if err != nil {
		return answer{}, err
	}
	text := wireGallery(g)
	lines := wireLines(g.Applications)
	text.Count, text.Applications = &g.Count, &lines
	return answer{fasthttp.StatusOK, text}, nil
}

// postApplications serves POST applications.
func postApplications(ctx context.Context, c *call) (answer, error) {
	o, err := readObject(c.body.bytes, "name", "description", "faceMinimumQualityScore", "galleryId",
		"verifyThreshold", "enrolmentGuard", "enrolmentGuardThreshold")
	if err != nil {
		return answer{}, err
	}
	var a router.NewApplication
	var w router.Write
	threshold := bounds{0, router.ThresholdMax}
	var errs [8]error
	a.Name, errs[0] = o.name()
	a.Description, _, errs[1] = o.text("description", descriptionMax)
	a.MinimumQuality, errs[2] = o.number("faceMinimumQualityScore", router.QualityMin, 1)
	a.VerifyThreshold, errs[3] = o.integer("verifyThreshold", threshold, router.ThresholdDefault)
	a.Guard, errs[4] = o.boolean("enrolmentGuard")
	a.GuardThreshold, errs[5] = o.integer("enrolmentGuardThreshold", threshold, router.ThresholdDefault)
	a.Gallery, errs[6] = o.gallery()
	w, errs[7] = c.write()
	if err := firstOf(errs[:]...); err != nil {
		return answer{}, err
	}
	made, err := c.service.CreateApplication(ctx, c.key.Tenant, w, a)
	if err != nil {
		return answer{}, err
	}
	return answer{fasthttp.StatusOK, wireApplication(made)}, nil
}

// getApplications serves GET applications.
func getApplications(ctx context.Context, c *call) (answer, error) {
	list, err := c.service.Applications(ctx, c.key.Tenant)
	if err != nil {
		return answer{}, err
	}
	return answer{fasthttp.StatusOK, applicationsBody{wireLines(list)}}, nil
}

// getApplication serves GET applications/{applicationId}.
func getApplication(ctx context.Context, c *call) (answer, error) {
	u, err := id.Parse(c.parameters[0])
	if err != nil {
		return answer{}, notFound("", "Application not found.")
	}
	a, err := c.service.Application(ctx, c.key.Tenant, id.Application{UUID: u})
	if err != nil {
		return answer{}, err
	}
	return answer{fasthttp.StatusOK, wireApplication(a)}, nil
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

// size reads the required size of a gallery.
func (o object) size() (int, error) {
	if _, ok := o["size"]; !ok {
		return 0, missing("size")
	}
	return o.integer("size", bounds{1, router.GallerySizeMax}, 0)
}

// gallery reads the required id of a gallery; what is no id is an unknown one.
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
		return id.Gallery{}, invalid(router.ReasonUnknownGallery, "There is no such gallery.")
	}
	return id.Gallery{UUID: u}, nil
}
