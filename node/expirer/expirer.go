// Package expirer expires events on the shards that a node leads.
//
// The package may import router and node/loop.
package expirer

import (
	"context"
	"sync"
	"time"

	"facet/node/loop"
	"facet/router"
)

const (
	// expireInterval is how often a node looks for due events. With the time of a proposal,
	// and of an election if a leader dies, an event is gone well within five seconds.
	expireInterval = 250 * time.Millisecond
	// expireTimeout is the longest time of one round.
	expireTimeout = 10 * time.Second
)

// Subjects expires events (routing.Router).
type Subjects interface {
	ExpireEvents(ctx context.Context) (router.Expired, error)
}

// Expirer expires events. It is safe for concurrent use.
type Expirer struct {
	*loop.Loop
	subjects Subjects

	mu      sync.Mutex // guards expired and waiting
	expired int
	waiting int
}

// New returns an Expirer; Run does its work.
func New(subjects Subjects) *Expirer {
	return &Expirer{Loop: loop.New("expiry"), subjects: subjects}
}

// Run expires events until ctx ends.
func (e *Expirer) Run(ctx context.Context) {
	e.Every(ctx, expireInterval, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, expireTimeout)
		defer cancel()
		out, err := e.subjects.ExpireEvents(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.expired += out.Events
		e.waiting = out.Waiting
		return err
	})
}

// Counts returns how many events have expired here, and how many are due but wait because
// this node's clock agrees with no majority.
func (e *Expirer) Counts() (expired, waiting int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.expired, e.waiting
}
