package httpapi

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"facet/router"
)

// right is a right that the role of an access key must have.
type right uint8

const (
	mayAsk     right = iota // for health and about the key: every role
	maySearch               // a photo in a gallery
	mayRead                 // list, verify, extract, compare
	mayFollow               // bulk registrations
	mayEnrol                // register subjects and files
	mayWrite                // change the subjects and tags of a gallery
	mayReview               // list cases and give verdicts
	mayAskCase              // see a case by its id, as who verifies gets it
	mayManage               // manage the tenant
	mayAudit                // read the audit log
	anybody                 // no signature is needed
)

// rights has the rights of each role. An unknown role has none.
var rights = map[router.Role][]right{
	router.RoleAdmin:      {mayAsk, maySearch, mayRead, mayFollow, mayEnrol, mayWrite, mayReview, mayAskCase, mayManage, mayAudit},
	router.RoleBiometric:  {mayAsk, maySearch, mayRead, mayFollow, mayEnrol, mayWrite, mayAskCase},
	router.RoleReadOnly:   {mayAsk, maySearch, mayRead, mayFollow, mayAskCase},
	router.RoleEnrolOnly:  {mayAsk, mayFollow, mayEnrol},
	router.RoleSearchOnly: {mayAsk, maySearch},
	router.RoleReviewer:   {mayAsk, mayReview, mayAskCase},
	router.RoleAuditor:    {mayAsk, mayAudit},
}

// permits reports whether role has right r.
func permits(role router.Role, r right) bool { return r == anybody || slices.Contains(rights[role], r) }

// keyUse says how an operation uses the header x-api-key.
type keyUse uint8

const (
	keyIgnored  keyUse = iota
	keyRequired        // checked before the body is parsed
	keyOptional        // checked if the request has it
	keyByBody          // the handler checks it if the body needs it, and counts the request
)

// cost is how much of the node an operation takes.
type cost uint8

const (
	aLittle cost = iota // memory and time of the groups
	anImage             // a place in the queue of the face engine, and a large body
	aSearch             // anImage, and time of all shards of the gallery
)

// operation is one row of the routing table.
type operation struct {
	method string
	// pattern is the path. A segment in braces matches any text; it matches the
	// empty text only when it ends in a question mark. A star as the last segment
	// matches one or more segments.
	pattern string
	version version
	right   right
	key     keyUse
	takes   cost
	handler
}

// healthPattern is the pattern of the operation with rules of its own.
const healthPattern = "/v1.1/health"

// table lists what a server answers.
type table struct {
	operations []operation
	pages      []operation // unless they are switched off
	home       operation   // one of them, for people who type the address of a node
}

// find returns the operation for a method and a split path, and the segments that
// match braces. The error is the 404 or 405 to answer.
func (t *table) find(method string, segments []string) (op *operation, parameters []string, err error) {
	var allowed []string
	for i := range t.operations {
		o := &t.operations[i]
		params, ok := match(o.pattern, segments)
		if !ok {
			continue
		}
		if o.method == method {
			return o, params, nil
		}
		allowed = append(allowed, o.method)
	}
	if allowed == nil {
		return nil, nil, gateway(fasthttp.StatusNotFound, "There is no such operation.")
	}
	slices.Sort(allowed)
	f := gateway(fasthttp.StatusMethodNotAllowed, "The method is not allowed here.")
	f.allow = strings.Join(allowed, ", ")
	return nil, nil, f
}

// match reports whether segments fit pattern and returns the segments in braces.
func match(pattern string, segments []string) (parameters []string, ok bool) {
	i := 0
	for part := range strings.SplitSeq(pattern[1:], "/") {
		if i == len(segments) {
			return nil, false
		}
		switch {
		case part == "*":
			return parameters, true
		case part[0] == '{' && (segments[i] != "" || strings.HasSuffix(part, "?}")):
			parameters = append(parameters, segments[i])
		case part != segments[i]:
			return nil, false
		}
		i++
	}
	return parameters, i == len(segments)
}

// route is find, and finds pages unless they are switched off. HEAD of a page is its GET without
// the body, which fasthttp leaves out.
func (s *Server) route(h *head) (op *operation, parameters []string, err error) {
	if s.rules.Load().Console == ConsoleOn && (h.method == fasthttp.MethodGet || h.method == fasthttp.MethodHead) {
		if h.path == s.table.home.pattern && h.typed() {
			return &s.table.home, nil, nil
		}
		i := slices.IndexFunc(s.table.pages, func(o operation) bool {
			_, ok := match(o.pattern, h.segments)
			return ok
		})
		if i >= 0 {
			return &s.table.pages[i], nil, nil
		}
	}
	return s.table.find(h.method, h.segments)
}

// typed reports whether a request wants a page and has no signature, as when a person types its address.
func (h *head) typed() bool {
	accepts, _ := h.header("accept")
	_, signed := h.header("authorization")
	return !signed && strings.Contains(accepts, "text/html")
}
