package router

import (
	"time"

	"facet/internal/id"
	"facet/internal/settings"
)

// Enrolment asks for a face to be added to a subject, or to replace one of its
// events.
type Enrolment struct {
	Access  Access
	Write   Write
	Subject id.Subject
	// Event is the event to replace. It is zero for a new event, and when the
	// subject's oldest active event is to be replaced.
	Event id.Event
	Image []byte
	// Tags are names of the gallery's tags. In a replacement, nil keeps the event's
	// tags and an empty list removes them.
	Tags []string
	// Note has the changes to the subject's note. Only UpdateSubject reads it.
	Note NotePatch
	// Expires is when the event expires. In a replacement the zero time keeps the time that
	// the event has, and NoExpiry removes it.
	Expires  time.Time
	NoExpiry bool
}

// GalleryPatch contains the changes to a gallery.
type GalleryPatch struct {
	settings.Change[settings.Gallery]
	// IfMatch is the ETag that the gallery must have, or empty.
	IfMatch string
}

// ApplicationPatch contains the changes to an application.
type ApplicationPatch struct {
	settings.Change[settings.Application]
	// IfMatch is the ETag that the application must have, or empty.
	IfMatch string
}

// ActiveEvent is an active event of a subject.
type ActiveEvent struct {
	ID id.Event
	// Expires is when the event expires, of itself or by its gallery's retention. It is zero
	// for never.
	Expires time.Time
}

// ActiveEvents are the active events of a subject in order of registration, and its note, or nil.
type ActiveEvents struct {
	Note *Note
	List []ActiveEvent
}

// ExpiringPage asks for a window of the events that expire before a time.
type ExpiringPage struct {
	Before time.Time
	Length int    // 1 to ListLengthMax
	After  string // the Next of an earlier page, or empty
}

// Expired is the outcome of ExpireEvents.
type Expired struct {
	// Events is how many events expired, Waiting how many are due but wait because this
	// node's clock agrees with no majority.
	Events, Waiting int
}

// Merging asks to merge one subject into another.
type Merging struct {
	Access Access
	Write  Write
	// Target gets the events of Source, which is then removed. The note of Target stays,
	// that of Source goes.
	Target, Source id.Subject
}
