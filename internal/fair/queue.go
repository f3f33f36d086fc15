package fair

import (
	"context"
	"errors"
	"maps"
	"math"
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
// The clock is the "time had" of the line that last had the next turn. A new line starts at
// the clock, so no tenant saves time up by staying away. A line is kept while it is above
// the clock, so no tenant loses a debt by going away (start-time fair queueing: Goyal,
// Vin and Cheng 1996).
//
// A turn can be lent before its end. When a tenant's only image waits for a worker, the next
// turn of a tenant that lately had more lends its worker at the end of a step, once, until
// that image is done. So a quiet tenant beside a flood waits for a step and not for a whole
// image. Its line, too, has had no more: nobody gets more than a share by sending one image
// after the other.

const (
	// turnFirst is the assumed time of a turn until the first turn has ended.
	turnFirst = 20 * time.Millisecond
	// An ended turn has the weight 1/turnShare in the mean time of turns.
	turnShare = 16
	// lateTime is how long turns count against a tenant that wants to borrow.
	lateTime = time.Second
)

// ErrFull is returned when a tenant's line, or the whole queue, has reached its
// largest length.
var ErrFull = errors.New("fair: the queue is full")

// Queue lets tenants take turns. The zero tenant is treated like any other, except that no
// turn is lent to it. It is safe for concurrent use.
type Queue struct {
	slots  int
	places *Pool[id.Tenant] // one for each waiter; its lock is taken with mu held

	mu      sync.Mutex // guards all below and the turns; held for a walk over the lines only
	busy    int        // turns that have started and neither ended nor lent their slot
	lent    *Turn      // waits until it gets a slot back; nil if none does
	clock   time.Duration
	typical time.Duration // moving mean of turns
	lines   map[id.Tenant]*line
	lately  map[id.Tenant]usage
	swept   time.Time // when use forgot tenants
}

// line is the line of one tenant.
type line struct {
	waiting []*Turn
	turns   int // started and not ended
	had     time.Duration
}

// Turn is one use of a worker. Queue.mu guards its fields.
type Turn struct {
	q       *Queue
	who     id.Tenant
	run     chan struct{} // closed when the turn gets a slot
	running bool          // has a slot
	lent    bool          // has lent its slot once
	charged time.Duration // at the start
	since   time.Time     // when it got its slot
	took    time.Duration // with a slot, until it was lent
}

// NewQueue returns a queue that runs at most workers turns at once and lets at most waiting
// callers wait. Both are at least 1.
func NewQueue(workers, waiting int) *Queue {
	return &Queue{
		slots: max(1, workers), places: NewPool[id.Tenant](int64(max(1, waiting))),
		typical: turnFirst, lines: make(map[id.Tenant]*line), lately: make(map[id.Tenant]usage),
	}
}

// Enter waits for a turn. The caller ends the turn by calling End, exactly once. Enter
// returns ErrFull at once when the queue is full, and the error of ctx when ctx ends first.
func (q *Queue) Enter(ctx context.Context, who id.Tenant) (*Turn, error) {
	t := &Turn{q: q, who: who, run: make(chan struct{})}
	if err := q.join(t); err != nil {
		return nil, err
	}
	select {
	case <-t.run:
		return t, nil
	case <-ctx.Done():
		q.abandon(t)
		return nil, ctx.Err()
	}
}

// join puts t at the end of its line, and starts it if it is first and a slot is free.
func (q *Queue) join(t *Turn) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.places.Take(t.who, 1) {
		return ErrFull
	}
	l := q.lines[t.who]
	if l == nil {
		l = &line{had: q.clock}
		q.lines[t.who] = l
	}
	l.waiting = append(l.waiting, t)
	q.advance()
	return nil
}

// advance starts turns while slots are free: first the one that has lent its slot, then those
// of waiters. It forgets idle lines whose time is not above the clock, and all idle lines while no turn
// runs. The caller holds mu.
func (q *Queue) advance() {
	if q.busy < q.slots && q.lent != nil {
		q.start(q.lent)
		q.lent = nil
	}
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
		q.clock = max(q.clock, next.had)
		q.begin(next)
	}
	for who, l := range q.lines {
		if len(l.waiting) == 0 && l.turns == 0 && (l.had <= q.clock || q.busy == 0) {
			delete(q.lines, who)
		}
	}
}

// begin starts the first turn that waits in l. The clock stays: a turn that borrows comes
// before others with less time, and they must not lose what they have not had. The caller
// holds mu.
func (q *Queue) begin(l *line) {
	t := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	q.places.Give(t.who, 1)
	l.had = max(l.had, q.clock)
	t.charged = q.typical
	l.had += t.charged
	l.turns++
	q.start(t)
}

// start lets t run in a free slot. The caller holds mu.
func (q *Queue) start(t *Turn) {
	q.busy++
	t.running, t.since = true, time.Now()
	close(t.run)
}

// stop takes the slot of t, if t has one. The caller holds mu.
func (q *Queue) stop(t *Turn) {
	if t.running {
		q.busy--
		t.running = false
		t.took += time.Since(t.since)
	}
}

// End ends the turn. Its line is charged with the time that the turn had a slot.
func (t *Turn) End() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop(t)
	q.settle(t, t.took)
	q.use(t.who, t.took)
	q.typical += (t.took - q.typical) / turnShare
	q.advance()
}

// settle replaces the charge for an ended turn by the time that it took. The caller holds mu.
func (q *Queue) settle(t *Turn, took time.Duration) {
	l := q.lines[t.who] // exists as long as the turn
	l.turns--
	l.had += took - t.charged
}

// Wanted reports whether Lend would lend the turn now.
func (t *Turn) Wanted() bool {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.q.borrower(t) != nil
}

// borrower returns the line of a tenant that t shall be lent to, or nil: one whose only image
// waits, and that had no more time than t's tenant, by the lines and lately. The caller holds mu.
func (q *Queue) borrower(t *Turn) *line {
	if t.lent || q.lent != nil {
		return nil
	}
	now := time.Now()
	most, had := q.lately[t.who].at(now), q.lines[t.who].had
	for who, l := range q.lines {
		if len(l.waiting) == 1 && l.turns == 0 && who != (id.Tenant{}) && l.had <= had && q.lately[who].at(now) <= most {
			return l
		}
	}
	return nil
}

// usage is the time that a tenant had. Its weight falls with its age, to 1/e in lateTime.
type usage struct {
	had   time.Duration
	until time.Time
}

// at returns the usage at a later time.
func (u usage) at(now time.Time) time.Duration {
	return time.Duration(float64(u.had) * math.Exp(-float64(now.Sub(u.until))/float64(lateTime)))
}

// use adds the time of an ended turn to the usage of its tenant. Once in a while it forgets
// the tenants that have none. The caller holds mu.
func (q *Queue) use(who id.Tenant, took time.Duration) {
	now := time.Now()
	q.lately[who] = usage{q.lately[who].at(now) + took, now}
	if now.Sub(q.swept) > lateTime {
		q.swept = now
		maps.DeleteFunc(q.lately, func(_ id.Tenant, u usage) bool { return u.at(now) < time.Millisecond })
	}
}

// Lend lends the turn's slot to a quiet tenant, and waits until the turn has a slot again. It
// returns at once when no such tenant waits, when the turn was lent before, or while another
// turn is lent. It returns the error of ctx when ctx ends first. The caller then ends the turn.
func (t *Turn) Lend(ctx context.Context) error {
	q := t.q
	q.mu.Lock()
	borrower := q.borrower(t)
	if borrower == nil {
		q.mu.Unlock()
		return nil
	}
	q.stop(t)
	t.lent, t.run, q.lent = true, make(chan struct{}), t
	q.begin(borrower)
	q.mu.Unlock()
	select {
	case <-t.run:
		return nil
	case <-ctx.Done():
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.lent == t {
			q.lent = nil
		}
		return ctx.Err()
	}
}

// abandon removes t from its line, or ends it if it has started meanwhile.
func (q *Queue) abandon(t *Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.running {
		q.stop(t)
		q.settle(t, 0)
	} else {
		l := q.lines[t.who]
		l.waiting = slices.DeleteFunc(l.waiting, func(other *Turn) bool { return other == t })
		q.places.Give(t.who, 1)
	}
	q.advance()
}

// Crowded reports whether Enter would refuse the tenant now.
func (q *Queue) Crowded(who id.Tenant) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy == q.slots && !q.places.Room(who, 1)
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
