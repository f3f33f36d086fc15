package main

import (
	"context"
	"errors"
)

// bring fetches a package. If an optional package can't be fetched, bring leaves
// it out with a warning, and the next set-up tries again.
func (s *setup) bring(ctx context.Context, c clients, p *pkg, tmp string) error {
	var err error
	if client := c.of(p.Kind); client == nil {
		err = errors.New(p.Kind.client() + " is missing") // only findClients can let it be, if p is optional
	} else {
		err = s.fetch(ctx, c, p, tmp)
	}
	if err == nil || !p.Optional || ctx.Err() != nil {
		return err
	}
	s.say("  warning  %s was left out, facet works without it (%s)\n           %v\n", p, p.About, err)
	return nil
}

// of returns the command that fetches packages of kind k, or nil if it is
// missing.
func (c clients) of(k kind) []string {
	if k == npm {
		return c.npm
	}
	return c.pip
}
