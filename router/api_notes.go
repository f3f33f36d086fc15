package router

import "facet/shard"

// Note is what a subject has beside its faces: an external id and user data.
type Note = shard.Note

// Limits of notes.
const (
	// ExternalIDMax is the most characters of an external id.
	ExternalIDMax = 128
	// UserDataMax is the most bytes of user data.
	UserDataMax = shard.UserDataMax
)

// NotePatch contains the changes to a note. A nil field changes nothing, and an empty one
// removes.
type NotePatch struct {
	ExternalID *string
	UserData   *[]byte
}

// IsZero reports whether the patch changes nothing.
func (p NotePatch) IsZero() bool { return p.ExternalID == nil && p.UserData == nil }

// Of returns n with the changes.
func (p NotePatch) Of(n Note) Note {
	if p.ExternalID != nil {
		n.ExternalID = *p.ExternalID
	}
	if p.UserData != nil {
		n.UserData = *p.UserData
	}
	return n
}
