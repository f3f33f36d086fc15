package fair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
)

// The queue before the engine. Each tenant has a line of its own. The next turn goes to
// the line that has had the least of the workers' time. So a large photo counts for more
// than a small one, and a long line gets no more than a short one:
//
//	tenant   waiting     time had
//	a        ● ● ● ● ●   4.20 s
//	b        ●           4.16 s   ← next: charged with a typical turn when it starts,
//	c        ● ●         4.31 s     with the difference when it ends
//
// The clock is the "time had" of the line that had the last turn. A new line starts at
// the clock, so no tenant saves time up by staying away. A line is kept while it is above
// the clock, so no tenant loses a debt by going away (start-time fair queueing: Goyal,
// Vin and Cheng 1996).
//
// One tenant runs at most as many turns as there are workers. The slots beyond them are for
// a second tenant, whose turn can start while a flood has all workers: it waits for the end
// of a turn, and not for a turn of the flood that was started ahead as well.

const (
	// turnFirst is the assumed time of a turn until the first turn has ended.
	turnFirst = 20 * time.Millisecond
	// An ended turn has the weight 1/turnShare in the mean time of turns.
	turnShare = 16
)

// ErrFull is returned when a tenant's line, or the whole queue, has reached its
// largest length.
var ErrFull = errors.New("fair: the queue is full")

// Queue lets tenants take turns. The zero tenant is treated like any other. It is
// safe for concurrent use.
type Queue struct {
	slots  int
	each   int   // most turns of one tenant
	places *Pool // one for each waiter; its lock is taken with mu held

	mu      sync.Mutex // guards busy, clock, typical and lines; held for a walk over the lines only
	busy    int        // turns that have started and not ended
	clock   time.Duration
	typical time.Duration // moving mean of turns
	lines   map[id.Tenant]*line
}

// line is the line of one tenant.
type line struct {
	waiting []*waiter
	turns   int // started and not ended
	had     time.Duration
}

// waiter waits for its turn.
type waiter struct {
	who     id.Tenant
	begun   bool          // guarded by Queue.mu, like charged
	charged time.Duration // at the start of its turn
	turn    chan struct{} // closed at the start of its turn
}

// NewQueue returns a queue that runs at most workers turns of one tenant at once, and ahead
// more of others, and lets at most waiting callers wait. workers and waiting are at least 1.
func NewQueue(workers, ahead, waiting int) *Queue {
	workers = max(1, workers)
	return &Queue{
		slots: workers + ahead, each: workers, places: NewPool(int64(max(1, waiting))),
		typical: turnFirst, lines: make(map[id.Tenant]*line),
	}
}

// Enter waits for a turn. The caller ends the turn by calling leave, exactly once.
// Enter returns ErrFull at once when the queue is full, and the error of ctx when ctx
// ends first.
func (q *Queue) Enter(ctx context.Context, who id.Tenant) (leave func(), err error) {
	w := &waiter{who: who, turn: make(chan struct{})}
	if err := q.join(w); err != nil {
		return nil, err
	}
	select {
	case <-w.turn:
		began := time.Now()
		return func() { q.leave(w, time.Since(began)) }, nil
	case <-ctx.Done():
		q.abandon(w)
		return nil, ctx.Err()
	}
}

// join puts w at the end of its line, and starts its turn if it is first and a slot
// is free.
func (q *Queue) join(w *waiter) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.places.Take(w.who, 1) {
		return ErrFull
	}
	l := q.lines[w.who]
	if l == nil {
		l = &line{had: q.clock}
		q.lines[w.who] = l
	}
	l.waiting = append(l.waiting, w)
	q.advance()
	return nil
}

// advance starts turns while there are slots and waiters. It forgets idle lines
// whose time is not above the clock, and all idle lines while no turn runs. The
// caller holds mu.
func (q *Queue) advance() {
	for q.busy < q.slots {
		var next *line
		for _, l := range q.lines {
			if len(l.waiting) > 0 && l.turns < q.each && (next == nil || l.had < next.had) {
				next = l
			}
		}
		if next == nil {
			break
		}
		w := next.waiting[0]
		next.waiting = slices.Delete(next.waiting, 0, 1)
		q.places.Give(w.who, 1)
		next.had = max(next.had, q.clock)
		q.clock = next.had
		w.begun, w.charged = true, q.typical
		next.had += w.charged
		next.turns++
		q.busy++
		close(w.turn)
	}
	for who, l := range q.lines {
		if len(l.waiting) == 0 && l.turns == 0 && (l.had <= q.clock || q.busy == 0) {
			delete(q.lines, who)
		}
	}
}

// leave ends a turn that took this long.
func (q *Queue) leave(w *waiter, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(w, took)
	q.typical += (took - q.typical) / turnShare
	q.advance()
}

// end frees w's slot and replaces the charge for its turn by the time that the turn
// took. The caller holds mu.
func (q *Queue) end(w *waiter, took time.Duration) {
	l := q.lines[w.who] // exists as long as the turn
	l.turns--
	l.had += took - w.charged
	q.busy--
}

// abandon removes w from its line, or ends its turn if the turn has started meanwhile.
func (q *Queue) abandon(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.begun {
		q.end(w, 0)
		q.advance()
		return
	}
	l := q.lines[w.who]
	l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	q.places.Give(w.who, 1)
	q.advance()
}

// Crowded reports whether Enter would refuse the tenant now.
func (q *Queue) Crowded(who id.Tenant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[who]
	return (q.busy == q.slots || l != nil && l.turns == q.each) && !q.places.Room(who, 1)
}

// Waiting returns the number of waiters.
func (q *Queue) Waiting() int { return int(q.places.Used()) }

// Limit returns the most callers that may wait.
func (q *Queue) Limit() int { return int(q.places.Max()) }

// tenantKey is the context key of the tenant.
type tenantKey struct{}

// With returns a context for work on behalf of the tenant.
func With(ctx context.Context, who id.Tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, who)
}

// Of returns the tenant of With. It is the zero tenant for the cluster's own work
// and for jobs.
func Of(ctx context.Context) id.Tenant {
	who, _ := ctx.Value(tenantKey{}).(id.Tenant)
	return who
}
