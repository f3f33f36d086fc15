package httpapi

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"facet/node/sigv4"
	"facet/router"
)

// version is a version of the biometric interface. The management operations answer
// as 1.1.
type version uint8

const (
	v1 version = iota
	v11
)

// errorType is a named error of the interface (§7) with its code. The list is
// closed, except for ServerError.
type errorType struct {
	name string
	code int
}

var (
	typeInvalidRequest = errorType{"InvalidRequest", 1001}
	typeDuplicate      = errorType{"Duplicate", 1002}
	typeTimeout        = errorType{"Timeout", 1003}
	typeNoFace         = errorType{"NoFace", 2001}
	typePoorQuality    = errorType{"PoorQuality", 2002}
	typeMultipleFaces  = errorType{"MultipleFaces", 2003}
	typeServerError    = errorType{"ServerError", 5000}
)

// kinds maps a kind of router error to a status and an error type. A status that is
// neither 400 nor 500 has no error type. A kind that is not listed gets 500
// ServerError.
var kinds = map[router.Kind]struct {
	status int
	is     errorType
	inV1   errorType // version 1 documents three types only (D27)
}{
	router.InvalidRequest: {400, typeInvalidRequest, typeInvalidRequest},
	router.Duplicate:      {400, typeDuplicate, typeInvalidRequest},
	router.Timeout:        {500, typeTimeout, typeTimeout},
	router.NoFace:         {400, typeNoFace, typeNoFace},
	router.PoorQuality:    {400, typePoorQuality, typePoorQuality},
	router.MultipleFaces:  {400, typeMultipleFaces, typeInvalidRequest},
	router.NotFound:       {status: 404},
	router.NotVerified:    {status: 404},
	router.Forbidden:      {status: 403},
	router.Busy:           {status: 429},
	router.OverQuota:      {status: 429},
	router.OtherSettings:  {status: 412},
	router.Unavailable:    {500, typeServerError, typeServerError},
	router.Insufficient:   {500, typeServerError, typeServerError},
}

// messageForbidden is the whole message for a wrong API key or a role without the
// right (interface, §5).
const messageForbidden = "Forbidden"

// errorBody is the body of an error answer.
type errorBody struct {
	Message   string `json:"message"`
	ErrorCode int    `json:"errorCode,omitzero"`
	ErrorType string `json:"errorType,omitzero"`
	Reason    string `json:"reason,omitzero"`
	// Quota names the quota that the request would exceed.
	Quota string `json:"quota,omitzero"`
	// Score and ID come with a verification below its threshold (D24).
	ID    string `json:"id,omitzero"`
	Score *int   `json:"score,omitzero"`
	// CaseID comes with a score in the review band.
	CaseID string `json:"caseId,omitzero"`
	// why is what the request's audit record has as the reason, if the client gets none.
	why string
}

// failure is an error together with its HTTP answer.
type failure struct {
	status int
	body   errorBody
	// retryAfter, when not 0, and allow, when not empty, are sent as headers.
	retryAfter time.Duration
	allow      string
}

// Error returns the message.
func (f *failure) Error() string { return f.body.Message }

// invalid returns a 400 InvalidRequest.
func invalid(reason, message string) *failure {
	return &failure{status: 400, body: errorBody{
		Message: message, ErrorCode: typeInvalidRequest.code, ErrorType: typeInvalidRequest.name, Reason: reason,
	}}
}

// badFrame returns a 400 for a request that HTTP may allow and we do not.
func badFrame(message string) *failure { return invalid("", message) }

// gateway returns an answer with a message only.
func gateway(status int, message string) *failure {
	return &failure{status: status, body: errorBody{Message: message}}
}

// busy returns the answer to a request that would wait behind too many others.
func busy() error {
	return &router.Error{Kind: router.Busy, Message: "too many requests are in progress; try again"}
}

// Reasons of refusals that clients get without a reason, in audit records.
const (
	whyRole   = "Role"
	whyAPIKey = "ApiKey"
)

// reasonKeyTerms is the reason of refusals by the terms of an access key.
const reasonKeyTerms = "KeyTerms"

// forbidden returns the answer to a wrong API key or a role without the right. why is for the audit record only.
func forbidden(why string) *failure {
	f := gateway(fasthttp.StatusForbidden, messageForbidden)
	f.body.why = why
	return f
}

// disabled returns the answer to a tenant that operators have disabled.
func disabled() *failure {
	f := gateway(fasthttp.StatusForbidden, "The tenant is disabled; the operators of the service can enable it.")
	f.body.Reason = "TenantDisabled"
	return f
}

// outsideTerms returns the answer to a request with an access key that has ended, or from another network.
func outsideTerms(message string) *failure {
	f := gateway(fasthttp.StatusForbidden, message)
	f.body.Reason = reasonKeyTerms
	return f
}

// notFound returns a 404 for something that a path or body names.
func notFound(reason, message string) *failure {
	f := gateway(fasthttp.StatusNotFound, message)
	f.body.Reason = reason
	return f
}

// failureOf returns the answer for err to a client of version v. fault is set when
// err is a fault of the service, which has to be logged; the answer then contains
// requestID.
func failureOf(err error, v version, requestID string) (f *failure, fault bool) {
	var refused *sigv4.Error
	var known *router.Error
	switch {
	case errors.As(err, &f):
		return f, false
	case errors.As(err, &refused) && refused.Unsigned != "": // the amendment of decisions D6 and D8
		return invalid("", refused.Message), false
	case errors.As(err, &refused):
		return gateway(fasthttp.StatusForbidden, refused.Message), false
	case errors.As(err, &known):
		if f, ok := ofRouter(known, v); ok {
			return f, false
		}
	case errors.Is(err, context.DeadlineExceeded):
		return typed(500, typeTimeout, "The request timed out."), false
	}
	return typed(500, typeServerError, "The service failed; the request id is "+requestID+"."), true
}

// ofRouter looks e up in kinds. ok is false for a kind that is not there.
func ofRouter(e *router.Error, v version) (f *failure, ok bool) {
	row, ok := kinds[e.Kind]
	if !ok {
		return nil, false
	}
	is := row.is
	if v == v1 {
		is = row.inV1
	}
	f = typed(row.status, is, e.Sentence())
	f.body.Reason = e.Reason
	f.retryAfter = e.RetryAfter
	switch e.Kind {
	case router.Forbidden:
		return forbidden(whyAPIKey), true
	case router.OverQuota:
		return overQuota(e), true
	case router.NotVerified:
		score := e.Score
		f.body.Score = &score
		if f.body.Reason == "" {
			f.body.Reason = router.ReasonNotVerified
		}
	case router.Busy, router.Unavailable, router.Insufficient:
		f.retryAfter = max(f.retryAfter, time.Second)
	default: // the row says everything
	}
	return f, true
}

// typed returns a failure with an error type. The zero type is left out.
func typed(status int, is errorType, message string) *failure {
	return &failure{status: status, body: errorBody{Message: message, ErrorCode: is.code, ErrorType: is.name}}
}

// retrySeconds returns the value of Retry-After: whole seconds, at least one.
func retrySeconds(d time.Duration) string {
	return strconv.Itoa(max(1, int(math.Ceil(d.Seconds()))))
}

// firstOf returns the first error that is not nil. A body with several faults gets
// the same answer every time.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
