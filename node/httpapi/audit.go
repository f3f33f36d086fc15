package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/trace"
	"facet/node/audit"
	"facet/node/audit/entry"
	"facet/router"
	"facet/router/calls"
)

// auditTimeout is how long a request waits for its record.
const auditTimeout = 5 * time.Second

// headerPurpose is the header in which a caller states the ground of a request.
const headerPurpose = "x-purpose"

// Auditor makes the records of requests durable. *audit.Recorder is one.
type Auditor interface {
	// Keeps reports whether the requests of a tenant have records. It must be quick.
	Keeps(tenant id.Tenant) bool
	// Full reports whether a tenant has as many records as its quota allows. It must be quick.
	Full(tenant id.Tenant) bool
	// Record returns when the record is as durable as the tenant asks for.
	Record(ctx context.Context, tenant id.Tenant, e audit.Event) error
	// Correct adds a record without waiting.
	Correct(tenant id.Tenant, e audit.Event)
	// Refused counts a request without a valid signature. It must be quick.
	Refused(source netip.Addr, why audit.Refusal)
	// Health counts the answer to a request for health. It must be quick.
	Health(who audit.Asker, status int)
}

// trail has what the record of a request says beside its head.
type trail struct {
	signer    router.AccessKey // the key, once the signature is verified
	source    []byte
	found     []audit.Found
	named     []naming
	salted    []audit.Subject // those that are named, with their salts
	threshold int
	limit     int
	searched  bool         // threshold and limit are set
	photos    router.Probe // until they are hashed
	probe     [sha256.Size]byte
	how       router.Searched
	quality   float32
	// gallery and application are those that the path, the body or the answer names.
	gallery     id.Gallery
	application id.Application
	changes     string // the fields that a request sets of a gallery or an application
	// review is the case that the request opened or is about, and verdict what it says of the case.
	review  id.UUID
	verdict entry.Verdict
}

// naming is a subject whose salt is looked up for the record.
type naming struct {
	subject id.Subject
	// known says that the enrolment guard found the subject, with score.
	known bool
	score int
	// removed is an event that the request removed, or zero. A subject without another one is not named.
	removed id.Event
}

// names notes subjects that the request names. Zero ones do not count.
func (t *trail) names(subjects ...id.Subject) {
	for _, s := range subjects {
		if !s.IsZero() {
			t.named = append(t.named, naming{subject: s})
		}
	}
}

// photo notes a probe of one photo, unless it could not be read.
func (t *trail) photo(image []byte) {
	if image != nil {
		t.photos = router.Probe{image}
	}
}

// asks notes the threshold of a search and its limit, unless neither was read.
func (t *trail) asks(threshold, limit int) {
	t.threshold, t.limit, t.searched = threshold, limit, threshold > 0 || limit > 0
}

// went notes how a search went, for a face with these attributes.
func (t *trail) went(how router.Searched, face engine.Attributes) {
	t.how, t.quality = how, face.Quality
}

// salted returns a subject with the salt of its note, which may be nil.
func salted(subject id.Subject, note *router.Note) audit.Subject {
	if note == nil {
		return audit.Subject{ID: subject}
	}
	return audit.Subject{ID: subject, Salt: note.Salt}
}

// finds notes a subject that the answer names. note is the subject's, or nil.
func (t *trail) finds(subject id.Subject, score int, note *router.Note) {
	t.found = append(t.found, audit.Found{Subject: salted(subject, note), Score: score})
}

// lookUp finds the salts of the subjects that the request names. Those that are unknown have no names in
// records.
func (c *call) lookUp(ctx context.Context) error {
	t := &c.trail
	for c.recorded() && len(t.named) > 0 {
		n := t.named[0]
		at := func(s audit.Subject) bool { return s.ID == n.subject }
		found := slices.IndexFunc(t.found, func(f audit.Found) bool { return at(f.Subject) })
		switch {
		case slices.ContainsFunc(t.salted, at):
		case found >= 0:
			t.salted = append(t.salted, t.found[found].Subject)
		default:
			events, err := c.service.Events(ctx, c.access, n.subject)
			if err != nil && router.KindOf(err) != router.NotFound {
				return err
			}
			if err == nil {
				t.salt(n, events)
			}
		}
		t.named = t.named[1:]
	}
	return nil
}

// salt notes a subject that was looked up.
func (t *trail) salt(n naming, events router.ActiveEvents) {
	other := func(e router.ActiveEvent) bool { return e.ID != n.removed }
	switch {
	case n.known:
		t.finds(n.subject, n.score, events.Note)
	case n.removed.IsZero() || slices.ContainsFunc(events.List, other):
		t.salted = append(t.salted, salted(n.subject, events.Note))
	}
}

// notePath notes what the path of a request names beside subjects.
func (t *trail) notePath(pattern string, parameters []string) {
	next := 0
	for part := range strings.SplitSeq(pattern, "/") {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		name, err := id.Parse(parameters[next])
		next++
		if err != nil {
			continue
		}
		switch part {
		case "{galleryId}":
			t.gallery.UUID = name
		case "{applicationId}":
			t.application.UUID = name
		case "{caseId}":
			t.review = name
		}
	}
}

// valueMax is the most bytes of a value in a record. Longer ones are left out.
const valueMax = 12

// noteChanges notes the fields that a request sets of a gallery or an application, with the values of numbers,
// true and false. Texts may be secrets.
func (t *trail) noteChanges(o object) {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if value := o[name]; value.Kind() != '"' && len(value) <= valueMax {
			name += "=" + string(value)
		}
		fields = append(fields, name)
	}
	t.changes = entry.Text(strings.Join(fields, " "))
}

// recorded reports whether the request has a record: its signature is right, and its tenant's requests have.
func (c *call) recorded() bool {
	a, signer := c.server.cfg.Audit, &c.trail.signer
	return a != nil && signer.ID != "" && a.Keeps(signer.Tenant)
}

// unrecordable reports whether the tenant's records are as many as its quota allows, and the request is a
// search or another one that does more than read or remove.
func (c *call) unrecordable() bool {
	return c.method != fasthttp.MethodGet && c.method != fasthttp.MethodDelete && c.recorded() && c.server.cfg.Audit.Full(c.trail.signer.Tenant)
}

// hashPhotos notes the hash of the request's photos, which are cleared before the record is written.
func (c *call) hashPhotos() {
	if len(c.trail.photos) > 0 && c.recorded() {
		hash := sha256.New()
		for _, photo := range c.trail.photos {
			sum := sha256.Sum256(photo)
			hash.Write(sum[:])
		}
		hash.Sum(c.trail.probe[:0])
	}
	c.trail.photos = nil
}

// event returns a record of the request.
func (c *call) event(kind entry.Kind) audit.Event {
	e := entry.New(kind, c.began)
	e.Key, e.Holder, e.Source = c.trail.signer.ID, c.trail.signer.Holder, c.trail.source
	e.Application, e.Gallery = c.access.Application, c.access.Gallery
	if c.access.Gallery.IsZero() {
		e.Application, e.Gallery = c.trail.application, c.trail.gallery
	}
	e.Operation, e.Reason = c.op.name(), c.trail.changes
	if purpose, ok := c.header(headerPurpose); ok && c.claim.Signed(headerPurpose) {
		e.Purpose = entry.Text(purpose)
	}
	e.ID, e.Case, e.Verdict = c.requestBytes(), c.trail.review, c.trail.verdict
	return audit.Event{Record: e, Found: c.trail.found, Named: c.trail.salted, Probe: c.trail.probe}
}

// audited returns the answer when the request's record is durable, or the error that the client gets
// instead. Unauthenticated requests (refused) and those for health are counted only.
func (s *Server) audited(rc *fasthttp.RequestCtx, c *call, a answer) answer {
	if !c.recorded() {
		return a
	}
	if c.op != nil && c.op.pattern == healthPattern {
		signer := &c.trail.signer
		s.cfg.Audit.Health(audit.Asker{Tenant: signer.Tenant, Key: signer.ID, Holder: signer.Holder}, a.status)
		return a
	}
	if err := c.lookUpLate(); err != nil {
		s.cfg.Log.Warn("the audit record of a request does not name its subject", "req", c.requestID, "err", err)
	}
	e := c.event(entry.Request)
	e.Status, e.Micros = a.status, uint64(time.Since(c.began).Microseconds())
	if body, ok := a.body.(errorBody); ok {
		e.Reason = cmp.Or(body.why, body.Reason, body.ErrorType)
	}
	c.trail.describe(e.Record)
	err := s.record(c, e)
	if err == nil {
		return a
	}
	withheld := c.event(entry.Withheld)
	withheld.Found, withheld.Named, withheld.Probe = nil, nil, [sha256.Size]byte{}
	withheld.Status = fasthttp.StatusInternalServerError
	s.cfg.Audit.Correct(c.trail.signer.Tenant, withheld)
	s.cfg.Log.Error("an answer is withheld: its audit record is not durable", "req", c.requestID, "err", err)
	return s.explain(rc, c, unrecorded(err))
}

// lookUpLate is lookUp after the handler's context may have ended.
func (c *call) lookUpLate() error {
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	return c.lookUp(ctx)
}

// describe adds to a record what was searched, and how.
func (t *trail) describe(e *entry.Record) {
	if t.searched {
		e.Threshold, e.Limit = uint32(t.threshold)+1, uint32(t.limit)
	}
	e.Generation, e.Quality = t.how.Generation, uint32(math.Round(1000*float64(t.quality)))
	if !t.how.Model.IsZero() {
		e.Pack = t.how.Model.String()
	}
	if t.how.Receipt != nil {
		for _, s := range t.how.Receipt.Shards {
			e.Searched = append(e.Searched, uint64(s.Shard), s.Index)
		}
	}
}

// refused counts a request without a valid signature.
func (s *Server) refused(rc *fasthttp.RequestCtx, why audit.Refusal) {
	if s.cfg.Audit != nil {
		s.cfg.Audit.Refused(clientOf(rc), why)
	}
}

// record waits for a record of the request.
func (s *Server) record(c *call, e audit.Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), auditTimeout)
	defer cancel()
	ctx, waiting := trace.Start(c.stages.In(ctx), trace.Stage{Name: trace.Audit})
	err := s.cfg.Audit.Record(ctx, c.trail.signer.Tenant, e)
	waiting.End(err)
	return err
}

// unrecorded returns the answer to a request whose record is not durable.
func unrecorded(err error) error {
	kind := router.Unavailable
	if errors.Is(err, audit.ErrFull) {
		kind = router.Busy
	}
	return &router.Error{Kind: kind, Message: "the audit log did not record the request in time; try again", RetryAfter: calls.RetryLater}
}

// requestBytes returns the request id. It is new, so it is the identity of a removal, too.
func (c *call) requestBytes() (b [16]byte) {
	if raw, err := hex.DecodeString(c.requestID); err == nil {
		copy(b[:], raw)
	}
	return b
}

// remembered returns the operation of a write whose outcome a shard remembers: writes of faces and
// subjects. It is zero for others.
func (c *call) remembered() id.Operation {
	switch {
	case !strings.Contains(c.op.pattern, "/subjects"):
		return id.Operation{}
	case c.method == fasthttp.MethodDelete:
		return c.requestBytes()
	}
	w, _ := c.write() // without a valid Idempotency-Key nothing is carried out
	return w.Operation
}

// opens records that a verification is about to open a case.
func (c *call) opens(name id.UUID) error {
	c.trail.review = name
	return c.intent()
}

// intent records that the request is about to change something.
func (c *call) intent() error {
	if !c.recorded() {
		return nil
	}
	e := c.event(entry.Intent)
	e.Doing = c.remembered()
	if err := c.server.record(c, e); err != nil {
		return unrecorded(err)
	}
	return nil
}
