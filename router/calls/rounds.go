package calls

import (
	"context"
	"sync"
)

// Rounds runs one function for all callers that arrived before it began: a caller
// never shares a round that was under way when it came, because what that round
// saw may be older than what the caller must see.
type Rounds struct {
	// Run is one round.
	Run func(context.Context) error

	// mu guards what follows. Never held while run works.
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

// Join waits for a round that begins after this call. Each caller's ctx ends its
// own waiting; a round itself runs on the context of the caller that leads it,
// and a follower whose leader gave up leads the next one.
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

// Nudge starts a round that nobody waits for, unless one runs.
func (r *Rounds) Nudge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy || r.closed {
		return
	}
	r.start(&round{done: make(chan struct{})})
}

// follow waits for the round after the running one. It is called with mu held.
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

// handOn runs the rounds that gathered meanwhile, in a goroutine that ends when
// none is left; Join's caller doesn't wait for them.
func (r *Rounds) handOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.next
	r.next = nil
	r.busy = false
	if next != nil {
		r.start(next)
	}
}

// start runs next in a goroutine. The caller holds mu.
func (r *Rounds) start(next *round) {
	r.busy = true
	r.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaderWaitMax+attemptMax)
		next.err = r.Run(ctx)
		cancel()
		close(next.done)
		r.handOn()
	})
}

// Close waits for the rounds that were handed on; from now on nobody follows.
func (r *Rounds) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
}
