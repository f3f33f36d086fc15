package calls

import (
	"errors"
	"fmt"
	"time"
)

// Kind is what went wrong with a request, as its caller must tell it apart.
type Kind uint8

// The kinds of error that a Router method returns within an *Error. Any other
// error of a Router method is a fault of the service.
const (
	// InvalidRequest: the caller's request can't be carried out as it is.
	InvalidRequest Kind = iota + 1
	// Duplicate: the thing exists; the identifier is in the message.
	Duplicate
	// Timeout: the deadline passed, or a shard gave no answer in time.
	Timeout
	// NoFace: the image shows no face.
	NoFace
	// PoorQuality: the face's quality is below the application's minimum.
	PoorQuality
	// MultipleFaces: several faces where only one is permitted.
	MultipleFaces
	// NotFound: what the path or body names does not exist for this tenant.
	NotFound
	// NotVerified: the comparison stayed below the verify threshold; Score is set.
	NotVerified
	// Forbidden: the API key is missing, unknown or another tenant's, or the role
	// of the access key does not suffice.
	Forbidden
	// Busy: a limit on work in progress is reached; RetryAfter is set.
	Busy
	// Unavailable: a group has no leader or no quorum; RetryAfter is set.
	Unavailable
	// Outdated: this node's view of a gallery is older than a shard's. It stays
	// between nodes.
	Outdated
	// Insufficient: a node has no memory or disk for more events; RetryAfter is set.
	Insufficient
)

// Error is an error that the caller of the service is told about.
type Error struct {
	Kind Kind
	// Message is a sentence for people; it holds no secret and no path.
	Message string
	// Reason is a word for programs that never changes, or empty.
	Reason string
	// Score is the score of a comparison that was NotVerified.
	Score int
	// RetryAfter says when a retry makes sense (Busy, Unavailable, Insufficient).
	RetryAfter time.Duration
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an *Error.
func Errorf(kind Kind, reason, format string, args ...any) *Error {
	return &Error{Kind: kind, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// KindOf gives the kind of err, or 0 for a fault of the service.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}
