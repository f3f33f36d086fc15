package httpapi

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/router"
)

// standIn is a Service for tests of the HTTP server alone. It has four access keys,
// three API keys and no subject. Its "images" are text: "img …" shows one person;
// "panic", "fault", "slow", "late" and "busy" do what they say; any other text is not
// an image. The methods that it lacks are not called.
type standIn struct {
	Service
	keys       map[string]router.AccessKey
	registered atomic.Int64
	questions  atomic.Int64 // to the cluster, about access keys
	// entered gets a value when an extraction of "slow" starts; release ends it.
	entered chan struct{}
	release chan struct{}
}

// The tenants of the tests.
var (
	tenantA = id.Tenant{UUID: id.UUID{0xa}}
	tenantB = id.Tenant{UUID: id.UUID{0xb}}
)

// applications maps the API keys to their tenants. The first two are keyOf("app") and
// keyOf("second").
var applications = map[string]struct {
	tenant id.Tenant
	n      byte
}{keyOf("app"): {tenantA, 1}, keyOf("second"): {tenantA, 2}, keyOf("foreign"): {tenantB, 3}}

// keyOf returns the API key of the application with this name.
func keyOf(name string) string { return (name + strings.Repeat("x", 40))[:40] }

func newStandIn() *standIn {
	s := &standIn{keys: map[string]router.AccessKey{}, entered: make(chan struct{}, 100), release: make(chan struct{})}
	for _, k := range []router.AccessKey{
		{ID: "admin", Tenant: tenantA, KeyTerms: router.KeyTerms{Role: router.RoleAdmin}},
		{ID: "biometric", Tenant: tenantA, KeyTerms: router.KeyTerms{Role: router.RoleBiometric}},
		{ID: "reader", Tenant: tenantA, KeyTerms: router.KeyTerms{Role: router.RoleReadOnly}},
		{ID: "other", Tenant: tenantB, KeyTerms: router.KeyTerms{Role: router.RoleAdmin}},
	} {
		k.Secret = "secret of " + k.ID
		s.keys[k.ID] = k
	}
	return s
}

func (s *standIn) AccessKey(_ context.Context, accessKey string) (router.AccessKey, error) {
	if accessKey == "leaderless" {
		return router.AccessKey{}, &router.Error{Kind: router.Unavailable, Message: "no leader", RetryAfter: 1500 * time.Millisecond}
	}
	if k, ok := s.keys[accessKey]; ok {
		return k, nil
	}
	s.questions.Add(1)
	return router.AccessKey{}, router.Errorf(router.NotFound, "", "no such access key")
}

func (s *standIn) SyncMetaSince(context.Context, time.Time) error {
	s.questions.Add(1)
	return nil
}

func (s *standIn) Access(_ context.Context, tenant id.Tenant, apiKey string) (router.Access, error) {
	a, ok := applications[apiKey]
	if !ok || a.tenant != tenant {
		return router.Access{}, router.Errorf(router.Forbidden, "", "no such API key")
	}
	return router.Access{Tenant: tenant, Application: id.Application{UUID: id.UUID{a.n}}}, nil
}

func (s *standIn) Extract(ctx context.Context, image []byte, _ int) ([]router.Seen, error) {
	switch text := strings.TrimSpace(string(image)); text {
	case "panic":
		panic("bug: asked for")
	case "fault":
		return nil, errors.New("read model: disk on fire in /secret/place")
	case "busy":
		return nil, &router.Error{Kind: router.Busy, Message: "busy", RetryAfter: 2300 * time.Millisecond}
	case "late":
		return nil, context.DeadlineExceeded
	case "slow":
		s.entered <- struct{}{}
		select {
		case <-s.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	default:
		if strings.HasPrefix(text, "img ") {
			break
		}
		return nil, router.Errorf(router.InvalidRequest, router.ReasonImage, "not an image")
	}
	return make([]router.Seen, 1), nil
}

func (s *standIn) Search(ctx context.Context, q router.SearchQuery) (router.SearchResult, error) {
	_, err := s.Extract(ctx, q.Probe[0], 1)
	return router.SearchResult{}, err
}

func (s *standIn) Matches(ctx context.Context, q router.MatchQuery) (router.Matched, error) {
	_, err := s.Extract(ctx, q.Probe, 1)
	return router.Matched{}, err
}

func (s *standIn) VerifyFace(context.Context, []byte, router.Probe) (router.Verification, error) {
	return router.Verification{Score: 9999}, nil
}

func (s *standIn) Compare(_ context.Context, _ id.Tenant, faces []router.CompareFace) (router.Comparison, error) {
	return router.Comparison{Faces: make([]router.Compared, len(faces)), Scores: make([]int16, len(faces)*(len(faces)-1)/2)}, nil
}

func (s *standIn) Register(context.Context, router.Registration) (router.Registered, error) {
	s.registered.Add(1)
	return router.Registered{}, nil
}

func (s *standIn) Subjects(context.Context, router.Access, router.Page) (router.Listing, error) {
	return router.Listing{}, nil
}

func (s *standIn) Tags(context.Context, router.Access) ([]string, error) { return nil, nil }

func (s *standIn) CreateTag(context.Context, router.Access, string) error { return nil }

func (s *standIn) Galleries(context.Context, id.Tenant) ([]router.Gallery, error) { return nil, nil }
