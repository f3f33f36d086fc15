package calls

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Kind classifies an error for the caller of a request.
type Kind uint8

// The kinds of error that a Router method returns within an *Error. Any other
// error of a Router method is a fault of the service.
const (
	// InvalidRequest: the request can't be carried out as it is.
	InvalidRequest Kind = iota + 1
	// Duplicate: the thing exists already. The message contains its id.
	Duplicate
	// Timeout: the deadline passed, or a shard gave no answer in time.
	Timeout
	// NoFace: the image shows no face.
	NoFace
	// PoorQuality: the face's quality is below the application's minimum.
	PoorQuality
	// MultipleFaces: several faces where only one is permitted.
	MultipleFaces
	// NotFound: the tenant has nothing with the id or name in the path or body.
	NotFound
	// NotVerified: the score is below the verify threshold. Score is set.
	NotVerified
	// Forbidden: the API key is missing, unknown or another tenant's, or the role
	// of the access key does not permit the operation.
	Forbidden
	// Busy: a limit on work in progress is reached. RetryAfter is set.
	Busy
	// Unavailable: a group has no leader or no quorum. RetryAfter is set.
	Unavailable
	// Outdated: this node's view of a gallery is older than the shard's. Only nodes
	// see this kind.
	Outdated
	// Insufficient: a node has no memory or disk for more events. RetryAfter is
	// set.
	Insufficient
	// OverQuota: the request would exceed a quota of the tenant. Reason is the quota's
	// name. RetryAfter is set only if time alone makes room.
	OverQuota
	// OtherSettings: the settings were changed since the client read them.
	OtherSettings
)

// Error is an error whose message the client sees.
type Error struct {
	Kind Kind
	// Message is a sentence for people. It contains no secret and no path.
	Message string
	// Reason is a stable word for programs, or empty.
	Reason string
	// Score is the score of a comparison that is NotVerified.
	Score int
	// RetryAfter is how long the client should wait before a retry.
	RetryAfter time.Duration
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Sentence returns the message as a sentence with its full stop. A message that ends in
// a value after a colon gets none, so that people and programs can copy the value.
func (e *Error) Sentence() string {
	if e.Message == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(e.Message)
	text := string(unicode.ToUpper(first)) + e.Message[size:]
	at := strings.LastIndexByte(text, ' ')
	if strings.HasSuffix(text, ".") || at > 0 && text[at-1] == ':' {
		return text
	}
	return text + "."
}

// Errorf returns an *Error.
func Errorf(kind Kind, reason, format string, args ...any) *Error {
	return &Error{Kind: kind, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// KindOf returns the kind of err, or 0 for a fault of the service.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return 0
}
