package router

import (
	"facet/internal/id"
)

// Enrolment asks for a face to be added to a subject, or to replace one of its
// events.
type Enrolment struct {
	Access  Access
	Write   Write
	Subject id.Subject
	// Event is the event to replace. It is zero where a new event is registered, and
	// where the subject's oldest active event is replaced.
	Event id.Event
	Image []byte
	// Tags are names of the gallery's tags. When an event is replaced, nil keeps
	// its tags and an empty list clears them.
	Tags []string
}

// GalleryPatch says what to change of a gallery; nil keeps.
type GalleryPatch struct {
	Name, Description *string
	Size              *int // may only grow
}

// ApplicationPatch says what to change of an application; nil keeps.
type ApplicationPatch struct {
	Name, Description               *string
	MinimumQuality                  *float64
	VerifyThreshold, GuardThreshold *int
	Guard                           *bool
}
