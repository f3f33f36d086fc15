package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/valyala/fasthttp"

	"facet/internal/fair"
	"facet/internal/id"
	"facet/internal/requestlog"
	"facet/internal/trace"
	"facet/node/audit"
	"facet/node/console"
	"facet/node/listener"
	"facet/node/sigv4"
	"facet/router"
)

// call is one request on its way through the pipeline.
type call struct {
	head
	server     *Server
	service    Reader // intend returns the Writer
	requestID  string
	version    version
	parameters []string // of the path
	body       body
	counted    bool // in Server.requests
	searches   bool // counted in Server.searches
	claim      *sigv4.Claim
	key        router.AccessKey
	access     router.Access // of the API key, where the operation needs one
	// The fields that observe reports.
	began   time.Time
	stages  *trace.Request
	op      *operation // nil until it is known
	refusal string
	// committed is where the log has an erasure, if its Index is not 0.
	committed router.Committed
	etag      string // of the settings in the answer
	trail     trail  // what the request's audit record says
}

// headerCommit is the header that says where the log has an erasure: the group, and an index
// at or after the entry.
const headerCommit = "Facet-Commit"

// answer is the answer of a handler. It counts only without an error. A nil body is
// none, a rawBody and a console.Answer are sent as they are, every other body is sent as JSON.
type answer struct {
	status int
	body   any
}

// rawBody is a body of a given media type.
type rawBody struct {
	bytes     []byte // shared: callers do not change it
	mediaType string
}

// serve handles one request that fasthttp could parse.
func (s *Server) serve(rc *fasthttp.RequestCtx) {
	c := &call{server: s, service: s.cfg.Service, requestID: newRequestID(), version: v11, began: time.Now()}
	s.inFlight.Add(1)
	defer s.inFlight.Add(-1)
	if b := listener.Below(rc.Conn()); b != nil {
		b.Asks()
	}
	defer c.giveBack()
	a, err := s.answer(rc, c)
	if err != nil {
		a = s.explain(rc, c, err)
	}
	clear(c.body.bytes)
	s.write(rc, c, s.audited(rc, c, a))
	s.finish(rc, c)
	forget(rc)
	s.observe(rc, c)
}

// giveBack returns the request's share of the common budgets.
func (c *call) giveBack() {
	c.server.giveBody(c.body.payer, c.body.taken)
	if c.counted {
		c.server.requests.Give(c.key.Tenant, 1)
	}
	if c.searches {
		c.server.searches.leave(c.key.Tenant)
	}
}

// answer takes the request through all steps. A panic below it is a bug in the path
// of one request and not in the node's state, because the groups' state machines
// run elsewhere. So a panic is answered like any other fault.
func (s *Server) answer(rc *fasthttp.RequestCtx, c *call) (a answer, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("request panicked", "req", c.requestID, "err", p, "stack", string(debug.Stack()))
			a, err = answer{}, errPanicked
		}
	}()
	if c.head, err = readHead(&rc.Request.Header, s.cfg.Limits.BodyBytes); err != nil {
		return answer{}, err
	}
	if err := checkLineEnd(rc); err != nil {
		c.segments = nil // finish then closes the connection
		return answer{}, err
	}
	if s.preflight(rc, c) {
		return answer{status: fasthttp.StatusNoContent}, nil
	}
	op, params, routeErr := s.route(&c.head)
	c.op = op
	if op != nil {
		c.version, c.parameters = op.version, params
	} else if c.segments[0] == "v1" {
		c.version = v1
	}
	ctx, stages := trace.New(requestlog.With(context.Background(), c.requestID))
	c.stages = stages
	signed := op == nil || !s.open(op)
	if op != nil {
		c.trail.notePath(op.pattern, params)
	}
	if signed {
		if err := s.authenticate(ctx, rc, c); err != nil {
			return answer{}, err
		}
		ctx = s.cfg.Tracer.Sample(ctx, c.beginning())
	}
	ctx, cancel := context.WithTimeout(fair.With(ctx, c.key.Tenant), requestTimeout)
	defer cancel()
	if signed {
		if err := c.admit(ctx, op, routeErr); err != nil {
			return answer{}, err
		}
	}
	return op.serve(ctx, c)
}

// beginning describes the request's trace.
func (c *call) beginning() trace.Beginning {
	parent, _ := c.header("traceparent")
	return trace.Beginning{Name: c.op.name(), ID: c.requestID, Parent: parent, At: c.began}
}

// admit returns the error that keeps a signed request from op: its rate, route,
// role or API key. A request that is refused here counts too. Health has a rate of its
// own, by access key: a monitor must not mistake a busy tenant for a broken service.
func (c *call) admit(ctx context.Context, op *operation, routeErr error) error {
	if op != nil && op.pattern == healthPattern {
		if !permits(c.key.Role, op.right) {
			return forbidden(whyRole)
		}
		if wait := c.server.rates.takeHealth(c.server.cfg.Now(), c.key.ID); wait > 0 {
			return tooFast(wait)
		}
		return nil
	}
	if wait := c.server.rates.blocked(c.server.cfg.Now(), c.key.Tenant, one); wait > 0 {
		return tenantTooFast(wait)
	}
	if c.counted = c.server.requests.Take(c.key.Tenant, 1); !c.counted {
		return busy()
	}
	refusal := routeErr
	switch {
	case refusal != nil:
	case op.takes == aSearch && !c.search():
		refusal = tooManySearches()
	case !permits(c.key.Role, op.right):
		refusal = forbidden(whyRole)
	case c.unconditional():
		refusal = invalid("", "If-Match is taken by PATCH of a gallery or an application only: leave it out.")
	case c.unrecordable():
		refusal = tooManyRecords()
	case op.key == keyRequired, op.key == keyOptional && c.keyed():
		refusal = c.authorize(ctx)
	case op.key == keyByBody:
		return nil // the handler counts the request
	}
	return firstOf(c.count(), refusal)
}

// count takes the request from the tenant's rate and, when the API key is known by
// now, from the application's.
func (c *call) count() error { return c.pay(one) }

// pay takes a charge, or returns the error of a request that may not have it yet.
func (c *call) pay(of charge) error {
	now := c.server.cfg.Now()
	wait := c.server.rates.take(now, c.key.Tenant, c.access.Application, of)
	switch {
	case wait == 0:
		return nil
	case c.server.rates.blocked(now, c.key.Tenant, of) > 0:
		return tenantTooFast(wait)
	default:
		return tooFast(wait)
	}
}

// search counts a search in work, unless the tenant has too many.
func (c *call) search() bool {
	c.searches = c.server.searches.enter(c.key.Tenant, c.server.cfg.Quota(c.key.Tenant).Searches)
	return c.searches
}

// errPanicked stands for a panic that was logged.
var errPanicked = errors.New("request panicked")

// open reports whether op is answered without a signature.
func (s *Server) open(op *operation) bool {
	return op.right == anybody || s.rules.Load().Health == HealthOpen && op.pattern == healthPattern
}

// authenticate checks the signature and reads the body. It first checks what the
// headers alone tell, and whether the node has room for the request. Reading,
// hashing and decoding an image that is refused afterwards would take time from
// other requests. A busy node may therefore answer 429 before the signature is
// verified.
func (s *Server) authenticate(ctx context.Context, rc *fasthttp.RequestCtx, c *call) error {
	claim, err := s.rules.Load().verifier.Parse(request(c), s.cfg.Now())
	if err != nil {
		s.refused(rc, audit.NoSignature)
		return err
	}
	a := attempt{claim: claim, pair: pairOf(claim.AccessKey, clientOf(rc))}
	a.wait, a.proven = s.failures.blocked(s.cfg.Now(), a.pair)
	if a.wait > 0 && !a.proven {
		s.refused(rc, audit.TooOften)
		c.body.done = drain(rc, s.bodyOf(rc, &c.head))
		return wrongTooOften(a.wait)
	}
	if err := s.lookUp(ctx, &a); err != nil {
		return err
	}
	if err := s.hopeless(c.op, a.key.Tenant); err != nil {
		c.body.done = drain(rc, s.bodyOf(rc, &c.head))
		return err
	}
	if err := s.prove(ctx, rc, c, &a); err != nil {
		return err
	}
	c.query = claim.Query()
	c.claim, c.trail.signer, c.trail.source = claim, a.key, listener.Remote(rc.Conn()).AsSlice()
	if a.key.Disabled {
		return disabled()
	}
	if refusal := a.key.Allows(listener.Remote(rc.Conn()), s.cfg.Now()); refusal != "" {
		return outsideTerms(refusal)
	}
	c.key = a.key
	if s.cfg.Used != nil {
		s.cfg.Used(c.key.ID)
	}
	return s.charge(&c.body, c.key.Tenant)
}

// lookUp finds the access key of an attempt. An unknown one gets an empty secret.
func (s *Server) lookUp(ctx context.Context, a *attempt) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	name := a.claim.AccessKey
	a.began, a.seen = time.Now(), s.accessKeys.knows(name)
	ctx, lookup := trace.Start(ctx, trace.Stage{Name: trace.Key})
	var err error
	a.key, err = through(ctx, &s.accessKeys, name, func() (router.AccessKey, error) {
		return s.cfg.Service.AccessKey(ctx, name)
	})
	lookup.End(err)
	if a.known = router.KindOf(err) != router.NotFound; !a.known {
		a.key, err = router.AccessKey{}, nil
	}
	return err
}

// clientOf returns the address under which the client is counted.
func clientOf(rc *fasthttp.RequestCtx) netip.Addr {
	if b := listener.Below(rc.Conn()); b != nil {
		return b.IP()
	}
	return netip.Addr{}
}

// request returns the signed parts of a call.
func request(c *call) sigv4.Request {
	return sigv4.Request{Method: c.method, Target: c.target, Headers: c.headers}
}

// hopeless returns the refusal of a request that can be refused without reading its
// body.
func (s *Server) hopeless(op *operation, tenant id.Tenant) error {
	if op == nil || op.takes == aLittle {
		return nil
	}
	if wait := s.rates.blocked(s.cfg.Now(), tenant, one); wait > 0 {
		return tenantTooFast(wait)
	}
	if op.takes == aSearch && s.searches.full(tenant, s.cfg.Quota(tenant).Searches) {
		return tooManySearches()
	}
	if s.cfg.Crowded(tenant) {
		return busy()
	}
	return nil
}

// keyed reports whether the request has an API key.
func (c *call) keyed() bool {
	_, ok := c.header("x-api-key")
	return ok
}

// authorize finds the gallery and application of the request's API key.
func (c *call) authorize(ctx context.Context) error {
	apiKey, ok := c.header("x-api-key")
	if !ok || apiKey == "" || len(apiKey) > apiKeyMax {
		return forbidden(whyAPIKey)
	}
	ctx, lookup := trace.Start(ctx, trace.Stage{Name: trace.APIKey})
	access, err := through(ctx, &c.server.apiKeys, c.key.Tenant.String()+apiKey, func() (router.Access, error) {
		return c.service.Access(ctx, c.key.Tenant, apiKey)
	})
	lookup.End(err)
	if err != nil {
		return err
	}
	if !c.key.Reaches(access.Gallery) {
		c.trail.gallery, c.trail.application = access.Gallery, access.Application
		return forbidden(reasonKeyTerms)
	}
	c.access = access
	c.access.Role, c.access.Holder = c.key.Role, c.key.Holder
	return nil
}

// explain returns the answer for an error. It logs a fault of the service.
func (s *Server) explain(rc *fasthttp.RequestCtx, c *call, err error) answer {
	f, fault := failureOf(err, c.version, c.requestID)
	c.refusal = refusalOf(err, f)
	if fault {
		s.cfg.Log.Error("request failed", "req", c.requestID, "err", err)
	}
	header := &rc.Response.Header
	if f.retryAfter > 0 {
		header.Set(fasthttp.HeaderRetryAfter, retrySeconds(f.retryAfter))
	}
	if f.allow != "" {
		header.Set(fasthttp.HeaderAllow, f.allow)
	}
	return answer{status: f.status, body: f.body}
}

// write encodes an answer.
func (s *Server) write(rc *fasthttp.RequestCtx, c *call, a answer) {
	header := &rc.Response.Header
	header.Set("X-Request-Id", c.requestID)
	header.Set(fasthttp.HeaderCacheControl, "no-store")
	header.Set(fasthttp.HeaderXContentTypeOptions, "nosniff")
	if c.committed.Index > 0 {
		header.Set(headerCommit, fmt.Sprintf("group=%d, index=%d", c.committed.Group, c.committed.Index))
	}
	if c.etag != "" && a.status == fasthttp.StatusOK {
		header.Set(fasthttp.HeaderETag, `"`+c.etag+`"`)
	}
	rc.Response.SetStatusCode(a.status)
	page, isPage := a.body.(console.Answer)
	if isPage {
		for _, h := range page.Headers {
			header.Set(h.Name, h.Value)
		}
		rc.Response.SetBodyRaw(page.Body)
	}
	if !isPage || c.path == console.DocumentPath { // pages are for no other origin
		s.allowOrigin(rc, c)
	}
	if isPage || a.body == nil {
		return
	}
	if raw, ok := a.body.(rawBody); ok {
		header.SetContentType(raw.mediaType)
		rc.Response.SetBodyRaw(raw.bytes)
		return
	}
	text, err := json.Marshal(a.body)
	if err != nil { // a name that is not UTF-8, from a store that should have none
		s.cfg.Log.Error("encode answer", "req", c.requestID, "err", err)
		f := typed(fasthttp.StatusInternalServerError, typeServerError, "The answer can't be encoded; the request id is "+c.requestID+".")
		rc.Response.SetStatusCode(f.status)
		text, _ = json.Marshal(f.body) // numbers and ASCII always encode
	}
	header.SetContentType("application/json")
	rc.Response.SetBodyRaw(text)
}

// finish closes the connection when its state is in doubt: after a framing error,
// and when the body was not read to its end.
func (s *Server) finish(rc *fasthttp.RequestCtx, c *call) {
	if c.segments != nil && (rc.Request.Header.ContentLength() <= 0 || c.body.done) {
		return
	}
	rc.Response.SetConnectionClose()
	linger(rc.Conn())
}

// serveBroken answers a request that fasthttp could not parse, and closes the
// connection.
func (s *Server) serveBroken(rc *fasthttp.RequestCtx, err error) {
	disown(rc)
	c := &call{requestID: newRequestID(), version: v11, began: time.Now()}
	var small *fasthttp.ErrSmallBuffer
	var n net.Error
	var f *failure
	switch {
	case errors.As(err, &small):
		f = gateway(fasthttp.StatusRequestHeaderFieldsTooLarge, "The headers are too large.")
	case errors.As(err, &n) && n.Timeout():
		f = gateway(fasthttp.StatusRequestTimeout, "The request came too slowly.")
	default:
		f = badFrame("The request is not valid HTTP.")
	}
	rc.Response.Reset()
	s.write(rc, c, answer{status: f.status, body: f.body})
	s.observe(rc, c)
	linger(rc.Conn())
}

// linger keeps the connection open for a while after its last answer, so that the
// client sees the answer.
func linger(c net.Conn) {
	if b := listener.Below(c); b != nil {
		b.Linger()
	}
}

// preflight answers the unsigned request of a browser that asks whether it may call
// (CORS). It returns false when the request is another one or CORS is off.
func (s *Server) preflight(rc *fasthttp.RequestCtx, c *call) bool {
	origin, ok := c.header("origin")
	if c.method != fasthttp.MethodOptions || !ok || !s.rules.Load().origins[origin] {
		return false
	}
	header := &rc.Response.Header
	header.Set(fasthttp.HeaderAccessControlAllowMethods, "GET, POST, PUT, PATCH, DELETE")
	header.Set(fasthttp.HeaderAccessControlAllowHeaders,
		"authorization, content-type, accept, x-api-key, x-cloud-date, x-amz-date, x-amz-content-sha256, idempotency-key, if-match, x-purpose")
	header.Set(fasthttp.HeaderAccessControlMaxAge, "600")
	return true
}

// allowOrigin lets a web page of a configured origin read the answer.
func (s *Server) allowOrigin(rc *fasthttp.RequestCtx, c *call) {
	if len(s.rules.Load().origins) == 0 {
		return
	}
	header := &rc.Response.Header
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	if origin, ok := c.header("origin"); ok && s.rules.Load().origins[origin] {
		header.Set(fasthttp.HeaderAccessControlAllowOrigin, origin)
		header.Set(fasthttp.HeaderAccessControlExposeHeaders, "x-request-id, retry-after, etag")
	}
}

// newRequestID returns a new request id of 32 hexadecimal digits.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
