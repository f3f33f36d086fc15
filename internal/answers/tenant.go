package answers

import "facet/internal/settings"

// ApplicationEntry is an application in a list.
type ApplicationEntry struct {
	ID     ID     `json:"id"`
	Name   string `json:"name"`
	APIKey APIKey `json:"apiKey"`
}

// Applications are the applications of a tenant.
//
//facet:schema ApplicationList
//facet:frame
type Applications struct {
	Applications []ApplicationEntry `json:"applications"`
}

// Gallery is a gallery.
//
//facet:view GalleryEntry count
//facet:view GalleryDetail count applications
//facet:view GalleryCreated apiKey
type Gallery struct {
	ID               ID `json:"id"`
	settings.Gallery `json:",inline"`
	// Active events. Lists and details have it.
	Count *int `json:"count,omitzero" schema:"zero min=0"`
	// Only details have them.
	Applications *[]ApplicationEntry `json:"applications,omitzero"`
	// The key of the first application. Only the answer to the creation has it.
	APIKey APIKey `json:"apiKey,omitzero"`
	// Names these settings, for the condition of a change. Lists don't have it.
	ETag string `json:"etag,omitzero" schema:"client"`
}

// Galleries are the galleries of a tenant.
//
//facet:schema -
//facet:frame
type Galleries struct {
	Galleries []Gallery `json:"galleries"`
}

// Application is an API key for a gallery, with the settings of its use.
type Application struct {
	ID                   ID     `json:"id"`
	Name                 string `json:"name"`
	Description          string `json:"description"`
	APIKey               APIKey `json:"apiKey"`
	settings.Application `json:",inline"`
	// Names these settings, for the condition of a change.
	ETag string `json:"etag,omitzero" schema:"client"`
}
