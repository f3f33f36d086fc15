package httpapi

import "facet/node/console"

// New returns a Server of all operations; Serve starts it.
func New(cfg Config) (*Server, error) { return newServer(cfg, &served) }

var served = table{operations, pages, home}

// operations lists every operation that is served.
var operations = []operation{
	{"GET", "/openapi.json", v11, anybody, keyIgnored, aLittle, unaudited(getPage)},
	{"GET", "/v1.1/health", v11, mayAsk, keyIgnored, aLittle, unaudited(getHealth)},
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

// pages lists what the web console and the interface's pages need from a node besides the interface. It is answered to
// everybody and touches no data of a tenant.
var pages = []operation{
	{"GET", console.Root, v11, anybody, keyIgnored, aLittle, unaudited(getPage)},
	{"GET", console.SessionPath, v11, anybody, keyIgnored, aLittle, unaudited(getSession)},
	{"GET", console.Root + "/*", v11, anybody, keyIgnored, aLittle, unaudited(getPage)},
	{"GET", console.Docs, v11, anybody, keyIgnored, aLittle, unaudited(getPage)},
	{"GET", console.Docs + "/*", v11, anybody, keyIgnored, aLittle, unaudited(getPage)},
}

// home leads people who type the address of a node to the console.
var home = operation{"GET", "/", v11, anybody, keyIgnored, aLittle, unaudited(getPage)}
