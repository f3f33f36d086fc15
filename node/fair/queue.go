package fair

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
)

// The queue before the engine. Each tenant has a line of its own, and whose line has
// had the least of the workers' time goes next; so a large photo counts for more than a
// small one, and a long line gets no more than a short one:
//
//	tenant   waiting     time had
//	a        ● ● ● ● ●   4.20 s
//	b        ●           4.16 s   ← next: charged with a typical turn when it begins,
//	c        ● ●         4.31 s     with the difference when it ends
//
// The clock is the time had of the line that went last. A line does not begin below it,
// so nobody saves time up by staying away, and is kept while it is above, so nobody is
// forgiven a debt by going away (start-time fair queueing: Goyal, Vin and Cheng 1996).

const (
	// turnFirst is a typical turn before any has ended.
	turnFirst = 20 * time.Millisecond
	// turnShare is the weight of one turn in the mean, 1/turnShare.
	turnShare = 16
)

// ErrFull says that a tenant's line, or the whole queue, is as long as it may be.
var ErrFull = errors.New("fair: the queue is full")

// Queue gives tenants turns. The zero tenant is one like the others. It is safe for
// concurrent use.
type Queue struct {
	slots  int
	places *Pool // of those who wait; its lock is taken with mu held

	mu      sync.Mutex // guards what follows; held for a walk over the lines only
	busy    int        // turns that have begun and not ended
	clock   time.Duration
	typical time.Duration // moving mean of turns
	lines   map[id.Tenant]*line
}

// line is one tenant's.
type line struct {
	waiting []*waiter
	turns   int // that have begun and not ended
	had     time.Duration
}

// waiter waits for its turn.
type waiter struct {
	who     id.Tenant
	begun   bool          // guarded by Queue.mu, as charged
	charged time.Duration // when it began
	turn    chan struct{} // closed then
}

// NewQueue makes a queue for so many turns at once, before which so many may wait; both
// are at least 1.
func NewQueue(slots, waiting int) *Queue {
	return &Queue{
		slots: max(1, slots), places: NewPool(int64(max(1, waiting))),
		typical: turnFirst, lines: make(map[id.Tenant]*line),
	}
}

// Enter waits for a turn, which leave ends; it must be called, once. The error is
// ErrFull, at once, or ctx's.
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

// join puts w at the end of its line, and begins its turn if nobody is before it.
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

// advance begins turns while there are slots and somebody waits, and forgets lines that
// are level with the clock. The caller holds mu.
func (q *Queue) advance() {
	for q.busy < q.slots {
		var next *line
		for _, l := range q.lines {
			if len(l.waiting) > 0 && (next == nil || l.had < next.had) {
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

// leave ends a turn that took so long.
func (q *Queue) leave(w *waiter, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(w, took)
	q.typical += (took - q.typical) / turnShare
	q.advance()
}

// end gives w's slot back and corrects what it was charged with. The caller holds mu.
func (q *Queue) end(w *waiter, took time.Duration) {
	l := q.lines[w.who] // there, for the turn
	l.turns--
	l.had += took - w.charged
	q.busy--
}

// abandon takes w out of its line, or ends the turn that began meanwhile.
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

// Crowded tells whether Enter would refuse the tenant now.
func (q *Queue) Crowded(who id.Tenant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy == q.slots && !q.places.Room(who, 1)
}

// Waiting counts those who wait.
func (q *Queue) Waiting() int { return int(q.places.Used()) }

// Limit gives how many may wait.
func (q *Queue) Limit() int { return int(q.places.Max()) }

// tenantKey is what a tenant lies under in a context.
type tenantKey struct{}

// With gives a context whose work is done for the tenant.
func With(ctx context.Context, who id.Tenant) context.Context {
	return context.WithValue(ctx, tenantKey{}, who)
}

// Of gives the tenant that work is done for: the zero one when it is the cluster's own,
// or a job's.
func Of(ctx context.Context) id.Tenant {
	who, _ := ctx.Value(tenantKey{}).(id.Tenant)
	return who
}
