package cluster

import (
	"context"
	"sync"

	"facet/router/calls"
)

// Rounds runs one function for all callers that arrived before the run started. A
// caller never shares a run that was under way when it arrived, because that run
// may have read an older state than the caller must see.
type Rounds struct {
	// Run carries out one round.
	Run func(context.Context) error

	// mu guards next, busy and closed. It is not held while Run runs.
	mu     sync.Mutex
	next   *round
	busy   bool
	closed bool
	work   sync.WaitGroup
}

type round struct {
	done chan struct{}
	err  error
}

// Join waits for a round that starts after this call. It returns early when ctx
// ends. The first caller runs the round with its own context. The callers that
// arrive meanwhile share the next round, which runs in a goroutine.
func (r *Rounds) Join(ctx context.Context) error {
	r.mu.Lock()
	if r.busy && !r.closed {
		return r.follow(ctx)
	}
	r.busy = true
	r.mu.Unlock()
	err := r.Run(ctx)
	r.handOn()
	return err
}

// Nudge starts a round unless one is running. It does not wait.
func (r *Rounds) Nudge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || r.closed {
		return
	}
	r.start(&round{done: make(chan struct{})})
}

// follow waits for the round after the running one. The caller holds mu.
func (r *Rounds) follow(ctx context.Context) error {
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
	}
	mine := r.next
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handOn starts the round of the callers that arrived meanwhile, if there are any. Once r is closed, it
// carries the round out itself.
func (r *Rounds) handOn() {
	r.mu.Lock()
	next := r.next
	r.next, r.busy = nil, false
	if next != nil && !r.closed {
		r.start(next)
		next = nil
	}
	r.mu.Unlock()
	if next != nil {
		r.carryOut(next)
	}
}

// start starts next in a goroutine. The caller holds mu.
func (r *Rounds) start(next *round) {
	r.busy = true
	r.work.Go(func() {
		r.carryOut(next)
		r.handOn()
	})
}

// carryOut runs a round with a time of its own.
func (r *Rounds) carryOut(next *round) {
	ctx, cancel := context.WithTimeout(context.Background(), calls.LeaderMax)
	defer cancel()
	next.err = r.Run(ctx)
	close(next.done)
}

// Close waits for the rounds that run in goroutines. Callers that arrive later run
// their round themselves.
func (r *Rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}
