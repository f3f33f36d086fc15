package merger

import (
	"context"
	"errors"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/loop"
)

const (
	// interval is how often a node looks for merges.
	interval = 250 * time.Millisecond
	// most is the most merges that a node carries out at once; most of a merge's time is a pause.
	most = 64
	// timeout is the longest time of one try.
	timeout = 5 * time.Minute
)

// Subjects carries out merges of subjects (routing.Router).
type Subjects interface {
	// Merges returns the sources of the merges that this node has to carry out.
	Merges() []id.Subject
	CarryOut(ctx context.Context, source id.Subject) error
}

// Merger carries out merges.
type Merger struct {
	*loop.Loop
	subjects Subjects

	mu     sync.Mutex          // guards all below
	busy   map[id.Subject]bool // the sources in work
	failed []error             // since the last round
}

// New returns a Merger; Run does its work.
func New(subjects Subjects) *Merger {
	return &Merger{Loop: loop.New("merges"), subjects: subjects, busy: map[id.Subject]bool{}}
}

// Run carries out merges until ctx ends. It waits for those in work.
func (m *Merger) Run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	m.Every(ctx, interval, func(ctx context.Context) error {
		for _, source := range m.subjects.Merges() {
			if m.begin(source) {
				work.Go(func() { m.carryOut(ctx, source) }) // ends with ctx
			}
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		err := errors.Join(m.failed...)
		m.failed = nil
		return err
	})
}

// begin reports whether a merge may begin.
func (m *Merger) begin(source id.Subject) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[source] || len(m.busy) >= most {
		return false
	}
	m.busy[source] = true
	return true
}

func (m *Merger) carryOut(ctx context.Context, source id.Subject) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := m.subjects.CarryOut(ctx, source)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.busy, source)
	if err != nil && ctx.Err() == nil {
		m.failed = append(m.failed, err)
	}
}
