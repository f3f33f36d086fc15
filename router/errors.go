package router

import "facet/router/calls"

// Error is an error whose message the client sees.
type Error = calls.Error

// Kind classifies an Error.
type Kind = calls.Kind

// The kinds of error. Package calls describes each.
const (
	InvalidRequest = calls.InvalidRequest
	Duplicate      = calls.Duplicate
	Timeout        = calls.Timeout
	NoFace         = calls.NoFace
	PoorQuality    = calls.PoorQuality
	MultipleFaces  = calls.MultipleFaces
	NotFound       = calls.NotFound
	NotVerified    = calls.NotVerified
	Forbidden      = calls.Forbidden
	Busy           = calls.Busy
	Unavailable    = calls.Unavailable
	Insufficient   = calls.Insufficient
	OverQuota      = calls.OverQuota
	OtherSettings  = calls.OtherSettings
)

// Reasons of errors, for programs. They never change.
const (
	ReasonGalleryFull     = "GalleryFull"
	ReasonUnknownTag      = "UnknownTag"
	ReasonUnknownGallery  = "UnknownGallery"
	ReasonSubjectNotFound = "SubjectNotFound"
	ReasonSubjectMerged   = "SubjectMerged"
	ReasonNotVerified     = "NotVerified"
	ReasonImage           = "UnreadableImage"
	ReasonKeyReused       = "IdempotencyKeyReused"
	ReasonTagLimit        = "TagLimit"
	ReasonSubjectDeleted  = "SubjectDeleted"
	ReasonUnknownSource   = "UnknownSource"
	ReasonMerging         = "Merging"
	ReasonUnknownCursor   = "UnknownCursor"
	ReasonProbesDisagree  = "ProbesDisagree"
	ReasonOtherSettings   = "OtherSettings"
	// Of reviews.
	ReasonDoubtful     = "Doubtful"
	ReasonCaseClosed   = "CaseClosed"
	ReasonVerdictGiven = "VerdictGiven"
	ReasonHolderNeeded = "HolderNeeded"
	// Of comparisons.
	ReasonUnknownToken     = "UnknownToken"
	ReasonTokenExpired     = "TokenExpired"
	ReasonTokenOfOtherPack = "TokenOfOtherPack"
	ReasonNotDone          = "NotDone"
)

// Errorf returns an *Error.
func Errorf(kind Kind, reason, format string, args ...any) *Error {
	return calls.Errorf(kind, reason, format, args...)
}

// KindOf returns the kind of err, or 0 for a fault of the service.
func KindOf(err error) Kind { return calls.KindOf(err) }
