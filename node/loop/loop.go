// Package loop runs the periodic work of a node's parts and records the result of the last
// round.
package loop

import (
	"context"
	"sync"
	"time"

	"facet/internal/tick"
)

// State describes the last round of a part.
type State struct {
	// Name is the part's name.
	Name string `json:"name"`
	// Running reports whether the part has been started and not been stopped.
	Running bool `json:"running"`
	// Last is the end of the last round; zero before the first one.
	Last time.Time `json:"last,omitzero"`
	// Error is the error of the last round, empty if it succeeded.
	Error string `json:"error,omitempty"`
}

// Loop records the rounds of one part. Its methods are safe for concurrent use.
type Loop struct {
	mu    sync.Mutex // guards state
	state State
}

// New returns a Loop for the part name, which does not run yet.
func New(name string) *Loop { return &Loop{state: State{Name: name}} }

// State returns the state after the last round.
func (l *Loop) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Start records that the part runs. It returns a function that records its end.
func (l *Loop) Start() (end func()) {
	l.run(true)
	return func() { l.run(false) }
}

func (l *Loop) run(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Running = running
}

// Done records the end of a round with its error, or nil.
func (l *Loop) Done(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Last, l.state.Error = time.Now(), ""
	if err != nil {
		l.state.Error = err.Error()
	}
}

// Every calls step at once and then at each tick of interval until ctx ends. Several ticks
// during one step count as one.
func (l *Loop) Every(ctx context.Context, interval time.Duration, step func(context.Context) error) {
	defer l.Start()()
	for ctx.Err() == nil {
		l.Done(step(ctx))
		_ = tick.Pause(ctx, interval) // the loop checks ctx
	}
}
