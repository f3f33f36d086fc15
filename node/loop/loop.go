// Package loop runs the periodic work of a node's parts and remembers how the last
// round went, so that each part can be asked for it.
package loop

import (
	"context"
	"sync"
	"time"
)

// State is how a part is doing.
type State struct {
	// Name says which part it is.
	Name string `json:"name"`
	// Running reports whether the part has been started and not been stopped.
	Running bool `json:"running"`
	// Last is the end of the last round; zero before the first one.
	Last time.Time `json:"last,omitzero"`
	// Error is why the last round failed; empty if it did not.
	Error string `json:"error,omitempty"`
}

// Loop records the rounds of one part. Its methods are safe for concurrent use.
type Loop struct {
	mu    sync.Mutex // guards state
	state State
}

// New returns the record of a part that does not run yet.
func New(name string) *Loop { return &Loop{state: State{Name: name}} }

// State returns how the part is doing.
func (l *Loop) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Start notes that the part runs. It returns a function that notes its end.
func (l *Loop) Start() (end func()) {
	l.run(true)
	return func() { l.run(false) }
}

func (l *Loop) run(running bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Running = running
}

// Done notes the end of a round, which failed with err or succeeded.
func (l *Loop) Done(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Last, l.state.Error = time.Now(), ""
	if err != nil {
		l.state.Error = err.Error()
	}
}

// Every calls step at once and then at each interval, until ctx ends. Ticks that
// come during a step are one.
func (l *Loop) Every(ctx context.Context, interval time.Duration, step func(context.Context) error) {
	defer l.Start()()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		l.Done(step(ctx))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}
