package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"facet/engine/score"
	"facet/shard/scan"
)

const (
	// batchMax is how many waiting searches share a pass: two of sixteen lanes.
	batchMax = 2 * laneCount
	// waitingMax is how many searches may wait.
	waitingMax = 1024
)

// ErrBusy is returned when too many searches wait already.
var ErrBusy = errors.New("kernel: too many searches wait")

// Queue makes waiting searches of one matrix share a pass through memory. A search that finds a
// free pass begins at once, alone. Those that come meanwhile go together in the next pass. No
// search waits for others to come.
type Queue struct {
	matrix *Matrix
	table  *score.Table
	passes int

	// mu guards running and waiting. It is never held during a pass.
	mu      sync.Mutex
	running int
	waiting []*ticket
}

// ticket is a search in the queue. done is closed when its hits are ready, or when it must run the
// next pass itself; lead then has the searches of that pass.
type ticket struct {
	request request
	done    chan struct{}
	lead    []*ticket
	hits    []scan.Hit
	err     error
}

// NewQueue returns a queue that runs up to max(1, passes) passes at once.
func NewQueue(m *Matrix, table *score.Table, passes int) *Queue {
	return &Queue{matrix: m, table: table, passes: max(passes, 1)}
}

// Search does what Matrix.Search does, until ctx ends. Errors wrap the error of ctx, ErrTemplate or
// ErrBusy.
func (q *Queue) Search(ctx context.Context, query scan.Query) ([]scan.Hit, error) {
	// A bad probe must not fail the others of its pass.
	if err := q.matrix.shape.check(query.Probe); err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	t := &ticket{request: request{query, ctx.Err, ctx}, done: make(chan struct{})}
	leads, err := q.enter(t)
	if err != nil {
		return nil, err
	}
	if !leads {
		select {
		case <-t.done:
		case <-ctx.Done():
			if !q.leads(t) {
				return nil, fmt.Errorf("wait for a search: %w", ctx.Err())
			}
		}
	}
	if t.lead != nil {
		q.run(t.lead)
	}
	return t.hits, t.err
}

// enter makes t the leader of its own pass, or adds it to the waiting searches.
func (q *Queue) enter(t *ticket) (leads bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.running < q.passes:
		q.running++
		t.lead = []*ticket{t}
		return true, nil
	case len(q.waiting) >= waitingMax:
		return false, ErrBusy
	default:
		q.waiting = append(q.waiting, t)
		return false, nil
	}
}

// leads removes t, whose caller stops waiting, and reports whether that caller must run a pass. If
// the pass of another search has taken t, its hits for t are dropped.
func (q *Queue) leads(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, t); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return t.lead != nil
}

// run runs a pass for batch. The first search in batch is the caller's. Then run makes the first
// waiting search the leader of the next pass.
func (q *Queue) run(batch []*ticket) {
	requests := make([]request, len(batch))
	for i, t := range batch {
		requests[i] = t.request
	}
	searches, err := q.matrix.searchAll(q.table, requests, &active)
	for i, t := range batch {
		if t.err = err; err == nil {
			t.hits, t.err = searches[i].result()
		}
		if i > 0 {
			close(t.done)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running--
		return
	}
	n := min(len(q.waiting), batchMax)
	next := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	next[0].lead = next
	close(next[0].done)
}
