package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/router"
)

// memory is a Service on maps, with real rules for tenants, keys, sizes, order,
// events, tags and repeated writes. Its "images" are text: "img NAME…" shows the
// named persons, and a name may be followed by =QUALITY. Two images of one name
// score 9999, of one initial 7500, others 1200. "img" alone shows nobody; any other
// text is not an image. "panic", "fault", "slow" and "busy" do what they say.
type memory struct {
	mu           sync.Mutex
	keys         map[string]router.AccessKey
	galleries    []*memoryGallery
	applications []router.Application
	owners       map[id.Gallery]id.Tenant
	done         map[id.Operation]outcome
	jobs         memoryJobs
	clock        time.Time
	// entered gets a value when an extraction of "slow" starts; release ends it.
	entered chan struct{}
	release chan struct{}
}

type memoryGallery struct {
	router.Gallery
	entries []router.Entry // by last update
	events  map[id.Event]*memoryEvent
	tags    []*memoryTag // in order of creation
}

// memoryEvent is an active event.
type memoryEvent struct {
	subject id.Subject
	person  string
	first   time.Time // of its first registration
	tags    []*memoryTag
}

// memoryTag keeps its identity when it is renamed. A deleted one sleeps.
type memoryTag struct {
	name string
	live bool
}

// outcome is the result of a write and the body of its request.
type outcome struct {
	request [16]byte
	value   any
}

// The tenants and access keys of the tests.
var (
	tenantA = id.Tenant{UUID: id.UUID{0xa}}
	tenantB = id.Tenant{UUID: id.UUID{0xb}}
)

func newMemory() *memory {
	m := &memory{
		keys:    map[string]router.AccessKey{},
		owners:  map[id.Gallery]id.Tenant{},
		done:    map[id.Operation]outcome{},
		clock:   time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		entered: make(chan struct{}, 100),
		release: make(chan struct{}),
	}
	for _, k := range []router.AccessKey{
		{ID: "admin", Tenant: tenantA, Role: router.RoleAdmin},
		{ID: "biometric", Tenant: tenantA, Role: router.RoleBiometric},
		{ID: "reader", Tenant: tenantA, Role: router.RoleReadOnly},
		{ID: "other", Tenant: tenantB, Role: router.RoleAdmin},
	} {
		k.Secret = "secret of " + k.ID
		m.keys[k.ID] = k
	}
	return m
}

func (m *memory) AccessKey(_ context.Context, accessKey string) (router.AccessKey, error) {
	if accessKey == "leaderless" {
		return router.AccessKey{}, &router.Error{Kind: router.Unavailable, Message: "No leader.", RetryAfter: 1500 * time.Millisecond}
	}
	if k, ok := m.keys[accessKey]; ok {
		return k, nil
	}
	return router.AccessKey{}, router.Errorf(router.NotFound, "", "no such access key")
}

func (m *memory) Access(_ context.Context, tenant id.Tenant, apiKey string) (router.Access, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.applications {
		if a.APIKey == apiKey && m.owners[a.Gallery] == tenant {
			return router.Access{Tenant: tenant, Application: a.ID, Gallery: a.Gallery}, nil
		}
	}
	return router.Access{}, router.Errorf(router.Forbidden, "", "no such API key")
}

// faces reads an "image".
func (m *memory) faces(ctx context.Context, image []byte) (names []string, attributes []engine.Attributes, err error) {
	if d, ok := ctx.Deadline(); !ok || time.Until(d) > requestTimeout {
		return nil, nil, fmt.Errorf("deadline %v, %v: want at most %v from now", d, ok, requestTimeout)
	}
	text := string(image)
	switch text {
	case "panic":
		panic("bug: asked for")
	case "fault":
		return nil, nil, fmt.Errorf("read model: disk on fire in /secret/place")
	case "busy":
		return nil, nil, &router.Error{Kind: router.Busy, Message: "Too many requests.", RetryAfter: 2300 * time.Millisecond}
	case "late":
		return nil, nil, fmt.Errorf("extract: %w", context.DeadlineExceeded)
	case "slow":
		m.entered <- struct{}{}
		select {
		case <-m.release:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		text = "img slow"
	}
	words := strings.Fields(text)
	if len(words) == 0 || words[0] != "img" {
		return nil, nil, router.Errorf(router.InvalidRequest, router.ReasonImage, "The image can't be read.")
	}
	for i, word := range words[1:] {
		name, quality, ok := strings.Cut(word, "=")
		q := 0.875
		if ok {
			if q, err = strconv.ParseFloat(quality, 32); err != nil {
				return nil, nil, err
			}
		}
		x := float32(100 * i)
		names = append(names, name)
		attributes = append(attributes, engine.Attributes{
			Face: engine.Rect{Left: x + 10.4, Top: 20.5, Right: x + 50, Bottom: 60}, Head: engine.Rect{Left: x, Top: 0, Right: x + 60, Bottom: 70},
			RightEye: engine.Point{X: x + 20, Y: 30}, LeftEye: engine.Point{X: x + 40, Y: 30},
			Score: 0.99951171, Frontal: 1, Quality: float32(q), Roll: -0.000012345678, Pan: 12.3456789, Tilt: 0,
		})
	}
	return names, attributes, nil
}

// one reads an "image" that has to show one person.
func (m *memory) one(ctx context.Context, image []byte) (string, engine.Attributes, error) {
	names, attributes, err := m.faces(ctx, image)
	switch {
	case err != nil:
		return "", engine.Attributes{}, err
	case len(names) == 0:
		return "", engine.Attributes{}, router.Errorf(router.NoFace, "", "There is no face in the image.")
	case len(names) > 1:
		return "", engine.Attributes{}, router.Errorf(router.MultipleFaces, "", "There are several faces in the image.")
	}
	return names[0], attributes[0], nil
}

// compare returns the score of two persons.
func compare(a, b string) int {
	switch {
	case a == b:
		return 9999
	case a[0] == b[0]:
		return 7500
	}
	return 1200
}

// once runs a write unless it ran before, and returns its first outcome.
func (m *memory) once(w router.Write, run func() (any, error)) (any, error) {
	if first, ok := m.done[w.Operation]; ok {
		if first.request != w.Request {
			return nil, router.Errorf(router.InvalidRequest, router.ReasonKeyReused, "The Idempotency-Key was used with another body.")
		}
		return first.value, nil
	}
	value, err := run()
	if err == nil {
		m.done[w.Operation] = outcome{w.Request, value}
	}
	return value, err
}

func (m *memory) Extract(ctx context.Context, image []byte, limit int) ([]engine.Attributes, error) {
	_, attributes, err := m.faces(ctx, image)
	if err != nil {
		return nil, err
	}
	if len(attributes) == 0 {
		return nil, router.Errorf(router.NoFace, "", "There is no face in the image.")
	}
	return attributes[:min(limit, len(attributes))], nil
}

// verified applies a verify threshold.
func verified(score, threshold int) (router.Verification, error) {
	if score < threshold {
		return router.Verification{}, &router.Error{
			Kind: router.NotVerified, Message: "Not verified.", Reason: router.ReasonNotVerified, Score: score,
		}
	}
	return router.Verification{Score: score}, nil
}

func (m *memory) VerifyFace(ctx context.Context, face, probe []byte) (router.Verification, error) {
	a, _, err := m.one(ctx, face)
	if err != nil {
		return router.Verification{}, err
	}
	b, _, err := m.one(ctx, probe)
	if err != nil {
		return router.Verification{}, err
	}
	return verified(compare(a, b), router.ThresholdDefault)
}

func (m *memory) VerifySubject(ctx context.Context, access router.Access, subject id.Subject, probe []byte) (router.Verification, error) {
	name, _, err := m.one(ctx, probe)
	if err != nil {
		return router.Verification{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	best := -1
	for _, e := range m.gallery(access.Gallery).events {
		if e.subject == subject {
			best = max(best, compare(name, e.person))
		}
	}
	if best < 0 {
		return router.Verification{}, router.Errorf(router.NotFound, router.ReasonSubjectNotFound, "Subject not found.")
	}
	return verified(best, m.calling(access).VerifyThreshold)
}

func (m *memory) Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error) {
	tags, err := m.live(q.Access, q.Tags)
	if err != nil {
		return router.SearchResult{}, err
	}
	name, attributes, err := m.one(ctx, q.Probe)
	if err != nil {
		return router.SearchResult{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	by := map[id.Subject][]router.CandidateEvent{}
	for event, e := range m.gallery(q.Access.Gallery).events {
		wanted := len(tags) == 0 || slices.ContainsFunc(e.tags, func(t *memoryTag) bool { return slices.Contains(tags, t) })
		if score := compare(name, e.person); wanted && score >= q.Threshold {
			by[e.subject] = append(by[e.subject], router.CandidateEvent{Event: event, Score: score})
		}
	}
	result := router.SearchResult{Attributes: attributes}
	for subject, events := range by {
		slices.SortFunc(events, func(a, b router.CandidateEvent) int {
			return cmp.Or(b.Score-a.Score, strings.Compare(a.Event.String(), b.Event.String()))
		})
		result.Candidates = append(result.Candidates, router.Candidate{Subject: subject, Score: events[0].Score, Events: events})
	}
	slices.SortFunc(result.Candidates, func(a, b router.Candidate) int {
		return cmp.Or(b.Score-a.Score, strings.Compare(a.Subject.String(), b.Subject.String()))
	})
	left := q.Limit
	for i := range result.Candidates {
		c := &result.Candidates[i]
		if q.Count == router.CountSubjects {
			c.Events = c.Events[:1]
		}
		c.Events = c.Events[:min(left, len(c.Events))]
		if left -= len(c.Events); left == 0 {
			result.Candidates = result.Candidates[:i+1]
			break
		}
	}
	return result, nil
}
