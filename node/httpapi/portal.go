package httpapi

import (
	"context"

	"github.com/valyala/fasthttp"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/settings"
	"facet/router"
)

// postGalleries serves POST galleries: a gallery and its first application.
var postGalleries = changes(readNewGallery, func(ctx context.Context, c *call, w Writer, q settingsRequest[router.NewGallery]) (router.Gallery, error) {
	return w.CreateGallery(ctx, c.key.Tenant, q.write, q.to)
}, func(c *call, _ settingsRequest[router.NewGallery], made router.Gallery) answer {
	text := wireGallery(made)
	c.etag = made.ETag
	if len(made.Applications) > 0 {
		text.APIKey = made.Applications[0].APIKey
	}
	return answer{fasthttp.StatusOK, text}
}, says[settingsRequest[router.NewGallery], router.Gallery]{
	asked: func(t *trail, q settingsRequest[router.NewGallery]) { t.noteChanges(q.given) },
	told: func(t *trail, _ settingsRequest[router.NewGallery], made router.Gallery) {
		t.gallery = made.ID
		if len(made.Applications) > 0 {
			t.application = made.Applications[0].ID
		}
	},
})

// settingsRequest creates a record, or changes the one of the path.
type settingsRequest[T any] struct {
	of    id.UUID
	to    T
	write router.Write
	given object // what was read for to
}

func readNewGallery(_ context.Context, c *call) (q settingsRequest[router.NewGallery], err error) {
	quality := settings.Named[settings.Application]("faceMinimumQualityScore")
	given, to, err := readSettings[settings.Gallery](c, true, quality.Name)
	q.given, q.to.Gallery = given, to.To
	if err == nil {
		q.to.MinimumQuality, err = given.number(quality.Name, quality.Min, quality.Max)
	}
	if err == nil {
		q.write, err = c.write()
	}
	return q, err
}

// getGalleries serves GET galleries.
var getGalleries = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]router.Gallery, error) {
	return r.Galleries(ctx, c.key.Tenant)
}, shows[nothing](wireGalleries), says[nothing, []router.Gallery]{})

func wireGalleries(list []router.Gallery) answers.Galleries {
	text := answers.Galleries{Galleries: make([]answers.Gallery, len(list))}
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
var patchGallery = changes(readGalleryPatch, func(ctx context.Context, c *call, w Writer, q settingsRequest[router.GalleryPatch]) (router.Gallery, error) {
	return w.UpdateGallery(ctx, c.key.Tenant, q.write, id.Gallery{UUID: q.of}, q.to)
}, func(c *call, _ settingsRequest[router.GalleryPatch], changed router.Gallery) answer {
	c.etag = changed.ETag
	return answer{fasthttp.StatusOK, wireGallery(changed)}
}, says[settingsRequest[router.GalleryPatch], router.Gallery]{
	asked: func(t *trail, q settingsRequest[router.GalleryPatch]) { t.noteChanges(q.given) },
})

func readGalleryPatch(ctx context.Context, c *call) (q settingsRequest[router.GalleryPatch], err error) {
	gallery, err := galleryOfPath(ctx, c)
	if err != nil {
		return q, err
	}
	q.of = gallery.UUID
	q.given, q.to.Change, err = readSettings[settings.Gallery](c, false)
	if err == nil {
		q.write, q.to.IfMatch, err = c.condition()
	}
	return q, err
}

// condition reads what identifies a change, and the ETag that it asks for.
func (c *call) condition() (w router.Write, ifMatch string, err error) {
	if w, err = c.write(); err == nil {
		ifMatch, err = c.ifMatch()
	}
	return w, ifMatch, err
}

// deleteGallery serves DELETE galleries/{galleryId}. It also deletes the gallery's
// applications.
var deleteGallery = changes(galleryOfPath, func(ctx context.Context, c *call, w Writer, gallery id.Gallery) (nothing, error) {
	return nothing{}, w.DeleteGallery(ctx, c.key.Tenant, gallery)
}, showsStatus[id.Gallery](fasthttp.StatusNoContent), says[id.Gallery, nothing]{})

// postApplications serves POST applications.
var postApplications = changes(readNewApplication, func(ctx context.Context, c *call, w Writer, q settingsRequest[router.NewApplication]) (router.Application, error) {
	return w.CreateApplication(ctx, c.key.Tenant, q.write, q.to)
}, showApplication[settingsRequest[router.NewApplication]], says[settingsRequest[router.NewApplication], router.Application]{
	asked: func(t *trail, q settingsRequest[router.NewApplication]) {
		t.gallery = q.to.Gallery
		t.noteChanges(q.given)
	},
	told: func(t *trail, _ settingsRequest[router.NewApplication], made router.Application) {
		t.application = made.ID
	},
})

func showApplication[Q any](c *call, _ Q, a router.Application) answer {
	c.etag = a.ETag
	return answer{fasthttp.StatusOK, wireApplication(a)}
}

func readNewApplication(_ context.Context, c *call) (q settingsRequest[router.NewApplication], err error) {
	given, to, err := readSettings[settings.Application](c, true, "galleryId")
	q.given, q.to.Application = given, to.To
	if err == nil {
		q.to.Gallery, err = given.gallery()
	}
	if err == nil {
		q.write, err = c.write()
	}
	return q, err
}

// getApplications serves GET applications.
var getApplications = reads(readsNothing, func(ctx context.Context, c *call, r Reader, _ nothing) ([]router.Application, error) {
	return r.Applications(ctx, c.key.Tenant)
}, shows[nothing](func(list []router.Application) answers.Applications {
	return answers.Applications{Applications: wireLines(list)}
}), says[nothing, []router.Application]{})

// getApplication serves GET applications/{applicationId}.
var getApplication = reads(applicationOfPath, func(ctx context.Context, c *call, r Reader, application id.Application) (router.Application, error) {
	return r.Application(ctx, c.key.Tenant, application)
}, showApplication[id.Application], says[id.Application, router.Application]{
	told: func(t *trail, _ id.Application, a router.Application) { t.gallery = a.Gallery },
})

// patchApplication serves PATCH applications/{applicationId}. A missing member
// changes nothing (D36).
var patchApplication = changes(readApplicationPatch, func(ctx context.Context, c *call, w Writer, q settingsRequest[router.ApplicationPatch]) (router.Application, error) {
	return w.UpdateApplication(ctx, c.key.Tenant, q.write, id.Application{UUID: q.of}, q.to)
}, showApplication[settingsRequest[router.ApplicationPatch]], says[settingsRequest[router.ApplicationPatch], router.Application]{
	asked: func(t *trail, q settingsRequest[router.ApplicationPatch]) { t.noteChanges(q.given) },
	told: func(t *trail, _ settingsRequest[router.ApplicationPatch], changed router.Application) {
		t.gallery = changed.Gallery
	},
})

func readApplicationPatch(ctx context.Context, c *call) (q settingsRequest[router.ApplicationPatch], err error) {
	application, err := applicationOfPath(ctx, c)
	if err != nil {
		return q, err
	}
	q.of = application.UUID
	q.given, q.to.Change, err = readSettings[settings.Application](c, false)
	if err == nil {
		q.write, q.to.IfMatch, err = c.condition()
	}
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
