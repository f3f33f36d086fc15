package httpapi

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"facet/router"
)

// A node that does not know an access key or API key has to ask the cluster
// before it may reject the key: another node may have created it a moment ago. A
// flood of made-up keys must not cause a flood of questions. The node can't
// remember unknown keys, or a new key would not work at once. Instead it delays
// the look-ups and asks for several keys with one question.
//
//	names not seen lately:  a   b c  d e f     g
//	the gate opens:         |        |         |      every gateInterval at most
//	looked up together:     a        b c       d e f
//
// Names that are looked up together share one question (router: rounds). Names
// that were found lately don't wait. The first name after a pause doesn't wait
// either.

// gate delays the look-up of names that were not found lately.
type gate struct {
	mu    sync.Mutex // guards opens and found; never held while waiting
	opens time.Time  // before it, names that were not found lately wait
	found recent[gateName]
}

func newGate() gate { return gate{found: recent[gateName]{max: gateNamesMax}} }

// gateName is the hash of a name: names may be secrets.
type gateName [sha256.Size]byte

// through calls look for name when g admits it.
func through[T any](ctx context.Context, g *gate, name string, look func() (T, error)) (T, error) {
	hash := gateName(sha256.Sum256([]byte(name)))
	if err := g.wait(ctx, hash); err != nil {
		var none T
		return none, err
	}
	found, err := look()
	switch {
	case err == nil:
		g.remember(hash)
	case router.KindOf(err) == router.NotFound || router.KindOf(err) == router.Forbidden:
		g.forget(hash)
	}
	return found, err
}

// wait returns at once for a name that was found lately, and when the gate has not
// opened within gateInterval. Otherwise it waits until the gate opens next.
func (g *gate) wait(ctx context.Context, name gateName) error {
	g.mu.Lock()
	found := g.found.has(name)
	now := time.Now()
	delay := g.opens.Sub(now)
	if found || delay <= 0 {
		if !found {
			g.opens = now.Add(gateInterval)
		}
		g.mu.Unlock()
		return nil
	}
	g.mu.Unlock()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// knows reports whether a name was found lately.
func (g *gate) knows(name string) bool {
	hash := gateName(sha256.Sum256([]byte(name)))
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.found.has(hash)
}

// remember lets name pass from now on.
func (g *gate) remember(name gateName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found.add(name)
}

// forget makes name wait again: it was revoked or never existed.
func (g *gate) forget(name gateName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.found.remove(name)
}
