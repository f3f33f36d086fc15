package httpapi

import (
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

// memory is a Service on maps, with real rules for tenants, keys, sizes, order
// and repeated writes. Its "images" are text: "img NAME…" shows the named
// persons; a name may be followed by =QUALITY. Two images of one name score
// 9999, of one initial 7500, others 1200. "img" alone shows nobody, other text
// is no image. "panic", "fault", "slow" and "busy" do what they say.
type memory struct {
	mu           sync.Mutex
	keys         map[string]router.AccessKey
	galleries    []*memoryGallery
	applications []router.Application
	owners       map[id.Gallery]id.Tenant
	done         map[id.Operation]outcome
	clock        time.Time
	// entered gets a value when an extraction of "slow" begins, release ends it.
	entered chan struct{}
	release chan struct{}
}

type memoryGallery struct {
	router.Gallery
	entries []router.Entry
	names   map[id.Event]string
}

// outcome is what a write did, and with which body.
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

// one is faces for an image that has to show one person.
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

// compare scores two persons.
func compare(a, b string) int {
	switch {
	case a == b:
		return 9999
	case a[0] == b[0]:
		return 7500
	}
	return 1200
}

// once runs a write that was not seen before, or gives its first outcome.
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

func (m *memory) gallery(g id.Gallery) *memoryGallery {
	i := slices.IndexFunc(m.galleries, func(o *memoryGallery) bool { return o.ID == g })
	return m.galleries[i]
}

func (m *memory) Register(ctx context.Context, r router.Registration) (router.Registered, error) {
	if slices.Contains(r.Tags, "unknown") {
		return router.Registered{}, router.Errorf(router.InvalidRequest, router.ReasonUnknownTag, "There is no tag unknown.")
	}
	name, attributes, err := m.one(ctx, r.Image)
	if err != nil {
		return router.Registered{}, err
	}
	if attributes.Quality < 0.5 {
		return router.Registered{}, router.Errorf(router.PoorQuality, "", "The face's quality is too low.")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(r.Write, func() (any, error) {
		g := m.gallery(r.Access.Gallery)
		if len(g.entries) >= g.Size {
			return nil, router.Errorf(router.InvalidRequest, router.ReasonGalleryFull, "The gallery is full.")
		}
		m.clock = m.clock.Add(time.Second)
		e := router.Entry{
			Subject: id.Subject{UUID: id.Derive(nil, "subject", r.Write.Operation, 1)},
			Event:   id.Event{UUID: id.Derive(nil, "event", r.Write.Operation, 1)},
			Updated: m.clock,
		}
		g.entries = append(g.entries, e)
		g.names[e.Event] = name
		return router.Registered{Subject: e.Subject, Event: e.Event, Attributes: attributes}, nil
	})
	if err != nil {
		return router.Registered{}, err
	}
	return value.(router.Registered), nil
}

func (m *memory) Unregister(_ context.Context, access router.Access, subject id.Subject) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	g, found := m.gallery(access.Gallery), false
	for i := range g.entries {
		if e := &g.entries[i]; e.Subject == subject && !e.Deleted {
			e.Deleted, found = true, true
		}
	}
	if !found {
		return router.Errorf(router.NotFound, router.ReasonSubjectNotFound, "Subject not found.")
	}
	return nil
}

func (m *memory) Subjects(_ context.Context, access router.Access, p router.Page) (router.Listing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.Clone(m.gallery(access.Gallery).entries)
	if p.Order == router.Descending {
		slices.Reverse(all)
	}
	total := len(all)
	all = all[min(p.Start, total):]
	return router.Listing{Entries: all[:min(p.Length, len(all))], Total: total}, nil
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

// verified applies the verify threshold.
func verified(score int) (router.Verification, error) {
	if score < router.ThresholdDefault {
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
	return verified(compare(a, b))
}

func (m *memory) VerifySubject(ctx context.Context, access router.Access, subject id.Subject, probe []byte) (router.Verification, error) {
	name, _, err := m.one(ctx, probe)
	if err != nil {
		return router.Verification{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	best := -1
	g := m.gallery(access.Gallery)
	for _, e := range g.entries {
		if e.Subject == subject && !e.Deleted {
			best = max(best, compare(name, g.names[e.Event]))
		}
	}
	if best < 0 {
		return router.Verification{}, router.Errorf(router.NotFound, router.ReasonSubjectNotFound, "Subject not found.")
	}
	return verified(best)
}

func (m *memory) Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error) {
	name, attributes, err := m.one(ctx, q.Probe)
	if err != nil {
		return router.SearchResult{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gallery(q.Access.Gallery)
	result := router.SearchResult{Attributes: attributes}
	for _, e := range g.entries {
		if score := compare(name, g.names[e.Event]); score >= q.Threshold && !e.Deleted {
			result.Candidates = append(result.Candidates, router.Candidate{
				Subject: e.Subject, Score: score, Events: []router.CandidateEvent{{Event: e.Event, Score: score}},
			})
		}
	}
	slices.SortFunc(result.Candidates, func(a, b router.Candidate) int {
		if a.Score != b.Score {
			return b.Score - a.Score
		}
		return strings.Compare(a.Subject.String(), b.Subject.String())
	})
	result.Candidates = result.Candidates[:min(q.Limit, len(result.Candidates))]
	return result, nil
}

// application makes an application; its API key is 40 characters of its name.
func (m *memory) application(a router.NewApplication, w router.Write) router.Application {
	made := router.Application{
		ID: id.Application{UUID: id.Derive(nil, "application", w.Operation, 0)}, Gallery: a.Gallery,
		Name: a.Name, Description: a.Description, MinimumQuality: a.MinimumQuality,
		APIKey:          (strings.ReplaceAll(a.Name, " ", "") + strings.Repeat("x", 40))[:40],
		VerifyThreshold: a.VerifyThreshold, GuardThreshold: a.GuardThreshold, Guard: a.Guard,
	}
	m.applications = append(m.applications, made)
	return made
}

func (m *memory) CreateGallery(_ context.Context, tenant id.Tenant, w router.Write, n router.NewGallery) (router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, err := m.once(w, func() (any, error) {
		for _, g := range m.galleries {
			if g.Name == n.Name && m.owners[g.ID] == tenant {
				return nil, router.Errorf(router.Duplicate, "", "The gallery exists; its API key is %s.", m.of(g.ID)[0].APIKey)
			}
		}
		g := router.Gallery{
			ID: id.Gallery{UUID: id.Derive(nil, "gallery", w.Operation, 0)}, Name: n.Name, Description: n.Description, Size: n.Size,
		}
		m.owners[g.ID] = tenant
		m.galleries = append(m.galleries, &memoryGallery{Gallery: g, names: map[id.Event]string{}})
		g.Applications = []router.Application{m.application(router.NewApplication{
			Gallery: g.ID, Name: n.Name, Description: n.Description, MinimumQuality: n.MinimumQuality,
			VerifyThreshold: router.ThresholdDefault, GuardThreshold: router.ThresholdDefault,
		}, w)}
		return g, nil
	})
	if err != nil {
		return router.Gallery{}, err
	}
	return value.(router.Gallery), nil
}

// of lists the applications of a gallery.
func (m *memory) of(g id.Gallery) []router.Application {
	return slices.DeleteFunc(slices.Clone(m.applications), func(a router.Application) bool { return a.Gallery != g })
}

// view is a gallery with its count.
func (m *memory) view(g *memoryGallery) router.Gallery {
	view := g.Gallery
	for _, e := range g.entries {
		if !e.Deleted {
			view.Count++
		}
	}
	return view
}

func (m *memory) Galleries(_ context.Context, tenant id.Tenant) ([]router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []router.Gallery
	for _, g := range m.galleries {
		if m.owners[g.ID] == tenant {
			list = append(list, m.view(g))
		}
	}
	return list, nil
}

func (m *memory) Gallery(_ context.Context, tenant id.Tenant, gallery id.Gallery) (router.Gallery, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner, ok := m.owners[gallery]; !ok || owner != tenant {
		return router.Gallery{}, router.Errorf(router.NotFound, "", "Gallery not found.")
	}
	view := m.view(m.gallery(gallery))
	view.Applications = m.of(gallery)
	return view, nil
}

func (m *memory) CreateApplication(_ context.Context, tenant id.Tenant, w router.Write, a router.NewApplication) (router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if owner, ok := m.owners[a.Gallery]; !ok || owner != tenant {
		return router.Application{}, router.Errorf(router.InvalidRequest, router.ReasonUnknownGallery, "There is no such gallery.")
	}
	value, err := m.once(w, func() (any, error) { return m.application(a, w), nil })
	if err != nil {
		return router.Application{}, err
	}
	return value.(router.Application), nil
}

func (m *memory) Applications(_ context.Context, tenant id.Tenant) ([]router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.applications), func(a router.Application) bool { return m.owners[a.Gallery] != tenant }), nil
}

func (m *memory) Application(_ context.Context, tenant id.Tenant, application id.Application) (router.Application, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.applications {
		if a.ID == application && m.owners[a.Gallery] == tenant {
			return a, nil
		}
	}
	return router.Application{}, router.Errorf(router.NotFound, "", "Application not found.")
}
