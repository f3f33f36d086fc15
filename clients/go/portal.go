package client

import (
	"context"
	"net/http"
)

func (g *Gallery) setETag(tag string) { g.ETag = tag }

func (a *Application) setETag(tag string) { a.ETag = tag }

// The values of MultipleFaces: what happens to a photo with several faces where one is
// wanted.
const (
	FacesRefuse   = "refuse"   // the error is MultipleFaces
	FacesDominant = "dominant" // takes the face that is clearly the one meant, if there is one
)

// changeOf returns a request that changes settings with this ETag, or any.
func changeOf(body any, ifMatch string, segments ...string) request {
	r := portal(http.MethodPatch, body, repeatKeyed, segments...)
	if ifMatch != "" {
		r.header = http.Header{"If-Match": {ifMatch}}
	}
	return r
}

// portal returns a request of tenant management.
func portal(method string, body any, r repeat, segments ...string) request {
	return request{method: method, path: join(append([]string{"api"}, segments...)...), body: body, portal: true, repeat: r}
}

// Galleries returns the tenant's galleries.
func (c *Client) Galleries(ctx context.Context) ([]Gallery, error) {
	got, err := call[struct {
		Galleries []Gallery `json:"galleries"`
	}](ctx, c, portal(http.MethodGet, nil, repeatFreely, "galleries"))
	return got.Galleries, err
}

// Gallery returns a gallery with its applications.
func (c *Client) Gallery(ctx context.Context, galleryID string) (Gallery, error) {
	return call[Gallery](ctx, c, portal(http.MethodGet, nil, repeatFreely, "galleries", galleryID))
}

// CreateGallery creates a gallery and an application for it. The answer contains
// the application's API key. The error is ErrDuplicate when a gallery has this
// name.
func (c *Client) CreateGallery(ctx context.Context, g NewGallery) (Gallery, error) {
	return call[Gallery](ctx, c, portal(http.MethodPost, g, repeatKeyed, "galleries"))
}

// UpdateGallery changes a gallery.
func (c *Client) UpdateGallery(ctx context.Context, galleryID string, change GalleryChange) (Gallery, error) {
	return call[Gallery](ctx, c, changeOf(change, change.IfMatch, "galleries", galleryID))
}

// DeleteGallery deletes a gallery with its subjects and applications.
func (c *Client) DeleteGallery(ctx context.Context, galleryID string) error {
	return run(ctx, c, portal(http.MethodDelete, nil, repeatGone, "galleries", galleryID))
}

// Applications returns the tenant's applications.
func (c *Client) Applications(ctx context.Context) ([]ApplicationEntry, error) {
	got, err := call[struct {
		Applications []ApplicationEntry `json:"applications"`
	}](ctx, c, portal(http.MethodGet, nil, repeatFreely, "applications"))
	return got.Applications, err
}

// Application returns an application.
func (c *Client) Application(ctx context.Context, applicationID string) (Application, error) {
	return call[Application](ctx, c, portal(http.MethodGet, nil, repeatFreely, "applications", applicationID))
}

// CreateApplication creates an application of a gallery.
func (c *Client) CreateApplication(ctx context.Context, a NewApplication) (Application, error) {
	return call[Application](ctx, c, portal(http.MethodPost, a, repeatKeyed, "applications"))
}

// UpdateApplication changes an application.
func (c *Client) UpdateApplication(ctx context.Context, applicationID string, change ApplicationChange) (Application, error) {
	return call[Application](ctx, c, changeOf(change, change.IfMatch, "applications", applicationID))
}

// DeleteApplication deletes an application. The service then refuses its API key.
func (c *Client) DeleteApplication(ctx context.Context, applicationID string) error {
	return run(ctx, c, portal(http.MethodDelete, nil, repeatGone, "applications", applicationID))
}
