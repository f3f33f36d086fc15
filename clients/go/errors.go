package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The kinds of refusals, for errors.Is. An *Error may have several kinds: one with
// the reason GalleryFull is ErrGalleryFull and ErrInvalidRequest.
var (
	ErrInvalidRequest = errors.New("invalid request")  // 400, 1001
	ErrDuplicate      = errors.New("duplicate")        // 400, 1002
	ErrTimeout        = errors.New("timeout")          // 500, 1003
	ErrNoFace         = errors.New("no face")          // 400, 2001
	ErrPoorQuality    = errors.New("poor quality")     // 400, 2002
	ErrMultipleFaces  = errors.New("multiple faces")   // 400, 2003
	ErrGalleryFull    = errors.New("gallery full")     // reason GalleryFull
	ErrUnknownTag     = errors.New("unknown tag")      // reason UnknownTag
	ErrImage          = errors.New("unreadable image") // reason UnreadableImage
	ErrUnknownCheck   = errors.New("unknown check")    // reason UnknownCheck: it ended, or its node stopped
	ErrNotVerified    = errors.New("not verified")     // 404 of verify; Error.Score is set, and Error.CaseID if people review it
	ErrMerged         = errors.New("merged")           // 404, reason SubjectMerged, of a removal: another subject has its faces
	ErrNotFound       = errors.New("not found")        // other 404s
	ErrForbidden      = errors.New("forbidden")        // 403: signature, role or API key
	ErrOtherSettings  = errors.New("other settings")   // 412: they were changed since the ETag in IfMatch was read
	ErrBusy           = errors.New("busy")             // 429
)

var (
	kindsByType = map[string]error{
		"InvalidRequest": ErrInvalidRequest, "Duplicate": ErrDuplicate, "Timeout": ErrTimeout,
		"NoFace": ErrNoFace, "PoorQuality": ErrPoorQuality, "MultipleFaces": ErrMultipleFaces,
	}
	kindsByReason = map[string]error{
		"GalleryFull": ErrGalleryFull, "UnknownTag": ErrUnknownTag, "UnreadableImage": ErrImage, "NotVerified": ErrNotVerified, "Doubtful": ErrNotVerified,
		"UnknownCheck": ErrUnknownCheck, "SubjectMerged": ErrMerged,
	}
	kindsByStatus = map[int]error{403: ErrForbidden, 404: ErrNotFound, 412: ErrOtherSettings, 429: ErrBusy}
)

// Error is an answer that reports a refusal or a failure.
type Error struct {
	Operation string // method and path, without the query
	Status    int    // of HTTP
	Message   string // for people
	Code      int    // errorCode, 0 if none
	Type      string // errorType, "" if none
	Reason    string // finer detail, "" if none
	// Score is the score of a verification below its threshold, else nil.
	Score *int
	// CaseID is the case that a verification in the review band has opened (reason Doubtful), or "".
	CaseID string
	// Into is the id of the subject into which the subject was merged, of ErrMerged.
	Into string
	// RetryAfter is the wait that the service asks for, or 0.
	RetryAfter time.Duration
	// RequestID identifies the request in the service's logs.
	RequestID string
}

// Error returns operation, status, type, reason, message and request id.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %d", e.Operation, e.Status)
	if e.Type != "" {
		text += " " + e.Type
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text + ": " + e.Message + " [request " + e.RequestID + "]"
}

// Is reports whether target is a kind of e. The kinds are the Err variables.
func (e *Error) Is(target error) bool {
	if target == nil {
		return false
	}
	if target == ErrNotFound && (kindsByReason[e.Reason] == ErrNotVerified || e.Reason == "SubjectMerged") {
		return false
	}
	return kindsByType[e.Type] == target || kindsByReason[e.Reason] == target || kindsByStatus[e.Status] == target
}

// again reports whether another try may succeed soon.
func (e *Error) again() bool {
	if e.RetryAfter > retryAfterMax || e.Reason == "Quota" && e.RetryAfter == 0 {
		return false
	}
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// readError returns the *Error in an answer. It ignores a body that is not JSON,
// which a proxy may send.
func readError(operation string, a answer) *Error {
	e := &Error{Operation: operation, Status: a.status, RequestID: a.header.Get("X-Request-Id")}
	var body struct {
		Message   string `json:"message"`
		ErrorCode int    `json:"errorCode"`
		ErrorType string `json:"errorType"`
		Reason    string `json:"reason"`
		Score     *int   `json:"score"`
		CaseID    string `json:"caseId"`
	}
	if json.Unmarshal(a.body, &body) == nil {
		e.Message, e.Code, e.Type, e.Reason = body.Message, body.ErrorCode, body.ErrorType, body.Reason
		e.Score, e.CaseID = body.Score, body.CaseID
	}
	if e.Is(ErrMerged) {
		e.Into = e.Message[strings.LastIndexByte(e.Message, ' ')+1:]
	}
	if e.Message == "" {
		e.Message = http.StatusText(a.status)
	}
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, math.MaxInt32)) * time.Second
	}
	return e
}
