package client

import (
	"context"
	"net/http"
)

// Gallery is a gallery. Lists and details set Count, details set Applications, and
// CreateGallery sets APIKey.
type Gallery struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Size        int    `json:"size"`  // capacity in events
	Count       int    `json:"count"` // active events
	// RetentionDays is how long after its last update an event expires, or 0 for never.
	RetentionDays int `json:"retentionDays,omitzero"`
	// SubjectTemplates reports that a subject with two or more events is also compared by the mean of
	// their templates.
	SubjectTemplates bool `json:"subjectTemplates,omitzero"`
	// PhotoLink is where people see the photo of a subject: a URL with {externalId}, or empty.
	PhotoLink string `json:"photoLink,omitzero"`
	// Purpose, LegalGround and Recipients are texts for the record of processing, or empty.
	Purpose      string             `json:"purpose,omitzero"`
	LegalGround  string             `json:"legalGround,omitzero"`
	Recipients   string             `json:"recipients,omitzero"`
	Applications []ApplicationEntry `json:"applications,omitzero"`
	APIKey       string             `json:"apiKey,omitzero"`
	// ETag is of the settings, for the IfMatch of a change. Lists don't have it.
	ETag string `json:"etag,omitzero"`
}

func (g *Gallery) setETag(tag string) { g.ETag = tag }

// ApplicationEntry is an application in a list.
type ApplicationEntry struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	APIKey string `json:"apiKey"`
}

// Application is an API key for a gallery, with the settings of its use.
type Application struct {
	ID                      string  `json:"id"`
	Name                    string  `json:"name"`
	Description             string  `json:"description"`
	APIKey                  string  `json:"apiKey"`
	FaceMinimumQualityScore float64 `json:"faceMinimumQualityScore"`
	// These fields go beyond the interface.
	VerifyThreshold         int  `json:"verifyThreshold"`
	EnrolmentGuard          bool `json:"enrolmentGuard"`
	EnrolmentGuardThreshold int  `json:"enrolmentGuardThreshold"`
	// MultipleFaces is FacesDominant, or empty for FacesRefuse.
	MultipleFaces string `json:"multipleFaces,omitzero"`
	// ReviewThreshold is the lowest score of the review band, 0 for none. ReviewVerdicts is how many verdicts
	// close a case, and ReviewDays how long it stays open.
	ReviewThreshold int `json:"reviewThreshold,omitzero"`
	ReviewVerdicts  int `json:"reviewVerdicts,omitzero"`
	ReviewDays      int `json:"reviewDays,omitzero"`
	// SearchThresholdMin is the lowest threshold of a search, and SearchLimitMax the largest limit. 0 is no bound.
	SearchThresholdMin int `json:"searchThresholdMin,omitzero"`
	SearchLimitMax     int `json:"searchLimitMax,omitzero"`
	// ETag is of the settings, for the IfMatch of a change.
	ETag string `json:"etag,omitzero"`
}

func (a *Application) setETag(tag string) { a.ETag = tag }

// The values of MultipleFaces: what happens to a photo with several faces where one is
// wanted.
const (
	FacesRefuse   = "refuse"   // the error is MultipleFaces
	FacesDominant = "dominant" // takes the face that is clearly the one meant, if there is one
)

// NewGallery describes a gallery to create, with its first application.
type NewGallery struct {
	Name                    string  `json:"name"`
	Description             string  `json:"description,omitzero"`
	FaceMinimumQualityScore float64 `json:"faceMinimumQualityScore"` // 0.45 to 1
	Size                    int     `json:"size"`
	RetentionDays           int     `json:"retentionDays,omitzero"` // 0 is for ever
	SubjectTemplates        bool    `json:"subjectTemplates,omitzero"`
	PhotoLink               string  `json:"photoLink,omitzero"` // an https URL with {externalId}
	// Purpose, LegalGround and Recipients are texts for the record of processing, of 256 characters at most.
	Purpose     string `json:"purpose,omitzero"`
	LegalGround string `json:"legalGround,omitzero"`
	Recipients  string `json:"recipients,omitzero"`
}

// GalleryChange contains changes to a gallery. A nil field changes nothing.
type GalleryChange struct {
	Name        *string `json:"name,omitzero"`
	Description *string `json:"description,omitzero"`
	Size        *int    `json:"size,omitzero"` // it can only grow
	// RetentionDays counts for the events that exist, too. 0 is for ever.
	RetentionDays *int `json:"retentionDays,omitzero"`
	// SubjectTemplates counts for the subjects that exist, too.
	SubjectTemplates *bool `json:"subjectTemplates,omitzero"`
	// PhotoLink is an https URL with {externalId}; an empty one is none.
	PhotoLink *string `json:"photoLink,omitzero"`
	// Purpose, LegalGround and Recipients are those of NewGallery; an empty one is none.
	Purpose     *string `json:"purpose,omitzero"`
	LegalGround *string `json:"legalGround,omitzero"`
	Recipients  *string `json:"recipients,omitzero"`
	// IfMatch is the ETag that the gallery must have, or empty. With another one the error is
	// ErrOtherSettings, and nothing changes.
	IfMatch string `json:"-"`
}

// NewApplication describes an application to create. A nil field takes the default.
type NewApplication struct {
	Name                    string  `json:"name"`
	Description             string  `json:"description,omitzero"`
	FaceMinimumQualityScore float64 `json:"faceMinimumQualityScore"` // 0.45 to 1
	GalleryID               string  `json:"galleryId"`
	VerifyThreshold         *int    `json:"verifyThreshold,omitzero"` // 7000
	EnrolmentGuard          bool    `json:"enrolmentGuard,omitzero"`
	EnrolmentGuardThreshold *int    `json:"enrolmentGuardThreshold,omitzero"` // 7000
	MultipleFaces           string  `json:"multipleFaces,omitzero"`           // FacesRefuse
	ReviewThreshold         int     `json:"reviewThreshold,omitzero"`         // 0 is no review band
	ReviewVerdicts          *int    `json:"reviewVerdicts,omitzero"`          // 1
	ReviewDays              *int    `json:"reviewDays,omitzero"`              // 7
	SearchThresholdMin      int     `json:"searchThresholdMin,omitzero"`      // 0 is no bound
	SearchLimitMax          int     `json:"searchLimitMax,omitzero"`          // 0 is no bound
}

// ApplicationChange contains changes to an application. A nil field changes
// nothing.
type ApplicationChange struct {
	Name                    *string  `json:"name,omitzero"`
	Description             *string  `json:"description,omitzero"`
	FaceMinimumQualityScore *float64 `json:"faceMinimumQualityScore,omitzero"`
	VerifyThreshold         *int     `json:"verifyThreshold,omitzero"`
	EnrolmentGuard          *bool    `json:"enrolmentGuard,omitzero"`
	EnrolmentGuardThreshold *int     `json:"enrolmentGuardThreshold,omitzero"`
	MultipleFaces           *string  `json:"multipleFaces,omitzero"`
	ReviewThreshold         *int     `json:"reviewThreshold,omitzero"`
	ReviewVerdicts          *int     `json:"reviewVerdicts,omitzero"`
	ReviewDays              *int     `json:"reviewDays,omitzero"`
	SearchThresholdMin      *int     `json:"searchThresholdMin,omitzero"`
	SearchLimitMax          *int     `json:"searchLimitMax,omitzero"`
	// IfMatch is that of GalleryChange.
	IfMatch string `json:"-"`
}

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
