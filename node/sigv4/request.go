package sigv4

import (
	"errors"
	"strings"
	"time"
)

// Limits of a request.
const (
	// Window is the largest difference between the date header and the server's
	// time, in both directions, inclusive.
	Window = 5 * time.Minute

	signedHeadersMax = 64  // names in SignedHeaders
	queryPairsMax    = 64  // parameters of a query
	queryKeyMax      = 64  // bytes of a parameter that a message names
	accessKeyMax     = 128 // characters of an access key
	authorizationMax = 4 << 10
	// formsMax is the most canonical forms tried for one request: path × query ×
	// host, with one port of Config.
	formsMax = 2 * 4 * 3
	// cachedKeysMax is the most derived signing keys in each of the two
	// generations.
	cachedKeysMax = 4096
)

// dateFormat is the form of the date headers, in UTC.
const dateFormat = "20060102T150405Z"

// Header is one header line as it was received or will be sent. Names are compared
// without regard to case.
type Header struct{ Name, Value string }

// Request is the part of a request that a signature covers, apart from the body's
// hash.
type Request struct {
	Method string
	// Target is the raw request target in origin form, as on the wire: the path,
	// and the query if there is one.
	Target string
	// Headers lists all header lines in their order, Host among them.
	Headers []Header
}

// path returns the path of the target.
func (r Request) path() string {
	path, _, _ := strings.Cut(r.Target, "?")
	return path
}

// query returns the query of the target, without the question mark.
func (r Request) query() string {
	_, query, _ := strings.Cut(r.Target, "?")
	return query
}

// values returns the values of all headers called name (lower case), in order.
func (r Request) values(name string) []string {
	var all []string
	for _, h := range r.Headers {
		if strings.EqualFold(h.Name, name) {
			all = append(all, h.Value)
		}
	}
	return all
}

// Dialect is a variant of the scheme. The token, the prefix of the secret and the
// terminator of the scope belong together.
type Dialect uint8

// The dialects.
const (
	AWS4   Dialect = iota // AWS4-HMAC-SHA256, AWS4, aws4_request
	Cloud4                // CLOUD4-HMAC-SHA256, CLOUD4, cloud4_request
)

// token returns the algorithm's name in the Authorization header.
func (d Dialect) token() string { return d.prefix() + "-HMAC-SHA256" }

// prefix returns the text that precedes the secret key.
func (d Dialect) prefix() string {
	if d == Cloud4 {
		return "CLOUD4"
	}
	return "AWS4"
}

// terminator returns the last part of the credential scope.
func (d Dialect) terminator() string { return strings.ToLower(d.prefix()) + "_request" }

// The date headers.
const (
	// CloudDate is the date header of the interface.
	CloudDate = "x-cloud-date"
	// AmzDate is the date header of stock signers.
	AmzDate = "x-amz-date"
)

// The messages of refused signatures (decision D4).
const (
	messageMissing  = "Missing Authentication Token"
	messageScope    = "Credential should be scoped to a valid region and service."
	messageMismatch = "The request signature we calculated does not match the signature you provided."
)

// Error is a refusal of a signature.
type Error struct {
	// Message is for the client: one of the messages of decision D4, the name of a
	// header that must be signed, or that of a repeated parameter. It contains no secret and no canonical string.
	Message string
	// Unsigned is the name of a header that the signature must cover, and does not; or empty.
	Unsigned string
	// cause is for logs and tests. It contains no value of the request.
	cause error
}

// Error returns the message and the cause.
func (e *Error) Error() string { return "sigv4: " + e.Message + " (" + e.cause.Error() + ")" }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// refuse returns an *Error.
func refuse(message, cause string) *Error {
	return &Error{Message: message, cause: errors.New(cause)}
}
