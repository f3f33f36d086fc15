package httpapi

import (
	"context"
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
	serve   func(ctx context.Context, c *call) (answer, error)
}

// healthPattern is the pattern of the operation with rules of its own.
const healthPattern = "/v1.1/health"

// operations lists every operation that is served.
var operations = []operation{
	{"GET", "/openapi.json", v11, anybody, keyIgnored, aLittle, getPage},
	{"GET", "/v1.1/health", v11, mayAsk, keyIgnored, aLittle, getHealth},
	{"GET", "/v1.1/whoami", v11, mayAsk, keyOptional, aLittle, getWhoami},

	{"GET", "/v1.1/subjects", v11, mayRead, keyRequired, aLittle, getSubjects},
	{"POST", "/v1.1/subjects", v11, mayEnrol, keyRequired, anImage, postSubjects},
	{"PUT", "/v1.1/subjects/{subjectId}", v11, mayWrite, keyRequired, anImage, putSubject},
	{"DELETE", "/v1.1/subjects/{subjectId}", v11, mayWrite, keyRequired, aLittle, deleteSubject},
	{"POST", "/v1.1/subjects/{subjectId}/merge", v11, mayWrite, keyRequired, aLittle, postMerge},
	{"GET", "/v1.1/subjects/{subjectId}/events", v11, mayRead, keyRequired, aLittle, getEvents},
	{"POST", "/v1.1/subjects/{subjectId}/events", v11, mayWrite, keyRequired, anImage, postEvents},
	{"PUT", "/v1.1/subjects/{subjectId}/events/{eventId}", v11, mayWrite, keyRequired, anImage, putEvent},
	{"DELETE", "/v1.1/subjects/{subjectId}/events/{eventId}", v11, mayWrite, keyRequired, aLittle, deleteEvent},
	// A request with an empty name is refused; it does not match another route.
	{"GET", "/v1.1/tags", v11, mayRead, keyRequired, aLittle, getTags},
	{"POST", "/v1.1/tags/{name?}", v11, mayWrite, keyRequired, aLittle, postTag},
	{"PUT", "/v1.1/tags/{oldName?}", v11, mayWrite, keyRequired, aLittle, putTag},
	{"DELETE", "/v1.1/tags/{name?}", v11, mayWrite, keyRequired, aLittle, deleteTag},
	{"POST", "/v1.1/jobs/bulkregister", v11, mayEnrol, keyRequired, aLittle, postBulk},
	{"GET", "/v1.1/jobs/bulkregister", v11, mayFollow, keyRequired, aLittle, getJobs},
	{"GET", "/v1.1/jobs/bulkregister/{batchId}", v11, mayFollow, keyRequired, aLittle, getBulk},
	{"GET", "/v1.1/jobs/bulkregister/{batchId}/{pagingId?}", v11, mayFollow, keyRequired, aLittle, getBulk},
	{"POST", "/v1.1/jobs/duplicates", v11, mayManage, keyRequired, aLittle, postDuplicates},
	{"GET", "/v1.1/jobs/duplicates", v11, mayManage, keyRequired, aLittle, getDuplicates},
	{"DELETE", "/v1.1/jobs/duplicates", v11, mayManage, keyRequired, aLittle, deleteDuplicates},
	{"GET", "/v1.1/jobs/duplicates/different", v11, mayManage, keyRequired, aLittle, getDifferent},
	{"PUT", "/v1.1/jobs/duplicates/different/{subjectId}/{otherId}", v11, mayManage, keyRequired, aLittle, putDifferent},
	{"DELETE", "/v1.1/jobs/duplicates/different/{subjectId}/{otherId}", v11, mayManage, keyRequired, aLittle, deleteDifferent},
	{"GET", "/v1.1/cases", v11, mayReview, keyRequired, aLittle, getCases},
	{"GET", "/v1.1/cases/{caseId}", v11, mayAskCase, keyRequired, aLittle, getCase},
	{"PUT", "/v1.1/cases/{caseId}/verdict", v11, mayReview, keyRequired, aLittle, putVerdict},
	{"POST", "/v1.1/face/extract", v11, mayRead, keyIgnored, anImage, postExtract},
	{"POST", "/v1.1/face/verify", v11, mayRead, keyByBody, anImage, postVerify},
	{"POST", "/v1.1/face/compare", v11, mayRead, keyIgnored, anImage, postCompare},
	{"POST", "/v1.1/face/search", v11, maySearch, keyRequired, aSearch, postSearch},
	{"POST", "/v1.1/face/matches", v11, mayManage, keyRequired, aSearch, postMatches},
	{"POST", "/v1.1/face/checks", v11, mayWrite, keyRequired, aLittle, postChecks},
	{"POST", "/v1.1/face/checks/{checkId}", v11, mayWrite, keyRequired, aSearch, postCheck},
	{"DELETE", "/v1.1/face/checks/{checkId}", v11, mayWrite, keyRequired, aLittle, deleteCheck},

	{"POST", "/v1/subjects", v1, mayEnrol, keyRequired, anImage, postSubjects},
	{"PUT", "/v1/subjects/{id}", v1, mayWrite, keyRequired, anImage, putSubject},
	{"DELETE", "/v1/subjects/{id}", v1, mayWrite, keyRequired, aLittle, deleteSubject},
	{"POST", "/v1/face/extract", v1, mayRead, keyRequired, anImage, postExtract},
	{"POST", "/v1/face/verify", v1, mayRead, keyRequired, anImage, postVerifyV1},
	{"POST", "/v1/face/search", v1, maySearch, keyRequired, aSearch, postSearch},

	{"GET", "/api/galleries", v11, mayManage, keyIgnored, aLittle, getGalleries},
	{"POST", "/api/galleries", v11, mayManage, keyIgnored, aLittle, postGalleries},
	{"GET", "/api/galleries/{galleryId}", v11, mayManage, keyIgnored, aLittle, getGallery},
	{"PATCH", "/api/galleries/{galleryId}", v11, mayManage, keyIgnored, aLittle, patchGallery},
	{"DELETE", "/api/galleries/{galleryId}", v11, mayManage, keyIgnored, aLittle, deleteGallery},
	{"GET", "/api/applications", v11, mayManage, keyIgnored, aLittle, getApplications},
	{"POST", "/api/applications", v11, mayManage, keyIgnored, aLittle, postApplications},
	{"GET", "/api/applications/{applicationId}", v11, mayManage, keyIgnored, aLittle, getApplication},
	{"PATCH", "/api/applications/{applicationId}", v11, mayManage, keyIgnored, aLittle, patchApplication},
	{"DELETE", "/api/applications/{applicationId}", v11, mayManage, keyIgnored, aLittle, deleteApplication},
	{"GET", "/api/audit", v11, mayAudit, keyIgnored, aLittle, getAudit},
	{"GET", "/api/audit/key", v11, mayAudit, keyIgnored, aLittle, getAuditFile},
	{"GET", "/api/audit/checkpoint", v11, mayAudit, keyIgnored, aLittle, getAuditFile},
	{"GET", "/api/audit/tile/*", v11, mayAudit, keyIgnored, aLittle, getAuditFile},
}

// find returns the operation for a method and a split path, and the segments that
// match braces. The error is the 404 or 405 to answer.
func find(method string, segments []string) (op *operation, parameters []string, err error) {
	var allowed []string
	for i := range operations {
		o := &operations[i]
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
