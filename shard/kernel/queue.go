package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"facet/engine/score"
	"facet/shard/scan"
)

const (
	// batchMax is how many waiting searches share a pass: two of sixteen lanes.
	batchMax = 2 * laneCount
	// waitingMax is how many searches may wait.
	waitingMax = 1024
	// asideStep is how often SearchAll looks whether searches run, and asideMost how long it waits for them.
	asideStep = time.Millisecond
	asideMost = 100 * time.Millisecond
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

// SearchAll does what Matrix.SearchAll does, until ctx ends, in a pass of its own. It is for work that
// nobody waits for: while other searches run it waits, for a tenth of a second at most, and they wait
// for its pass never. Errors are those of Search.
func (q *Queue) SearchAll(ctx context.Context, queries []scan.Query) ([][]scan.Hit, error) {
	if err := q.standAside(ctx); err != nil {
		return nil, err
	}
	requests := make([]request, len(queries))
	for i, query := range queries {
		requests[i] = request{query, ctx.Err, ctx}
	}
	searches, err := q.matrix.searchAll(q.table, requests, &active)
	if err != nil {
		return nil, err
	}
	hits := make([][]scan.Hit, len(queries))
	for i, s := range searches {
		if hits[i], err = s.result(); err != nil {
			return nil, err
		}
	}
	return hits, nil
}

// standAside waits while searches run.
func (q *Queue) standAside(ctx context.Context) error {
	for until := time.Now().Add(asideMost); q.busy() && time.Now().Before(until); {
		select {
		case <-time.After(asideStep):
		case <-ctx.Done():
			return fmt.Errorf("wait for searches: %w", ctx.Err())
		}
	}
	return nil
}

func (q *Queue) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running > 0
}
