package httpapi

import (
	"fmt"

	"facet/node/sigv4"
)

// OriginsMax is the most Origins of Rules.
const OriginsMax = 64

// rules are Rules in the form that requests need.
type rules struct {
	Rules
	verifier *sigv4.Verifier
	origins  map[string]bool
}

// Rules returns the present rules.
func (s *Server) Rules() Rules { return s.rules.Load().Rules }

// SetRules changes the rules for the requests that come from now on. It is safe for concurrent use.
func (s *Server) SetRules(r Rules) error {
	if len(r.Origins) > OriginsMax {
		return fmt.Errorf("%d origins, at most %d", len(r.Origins), OriginsMax)
	}
	next := &rules{
		Rules: r,
		verifier: sigv4.New(sigv4.Config{
			Region: s.cfg.Region, Service: service, Canonical: r.Canonical, Ports: []string{s.cfg.Port},
			MustSign: append([]string{"idempotency-key", "if-match"}, r.MustSign...),
		}),
		origins: make(map[string]bool, len(r.Origins)),
	}
	for _, origin := range r.Origins {
		next.origins[origin] = true
	}
	s.rules.Store(next)
	s.rates.set(r.TenantRate, r.ApplicationRate)
	return nil
}
