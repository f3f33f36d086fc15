package importing

import (
	"context"
	"sync"
	"time"
)

const (
	// atOncePerNode is how many requests for each node an import starts with, and
	// atOncePerNodeMax the most that it tries.
	atOncePerNode, atOncePerNodeMax = 4, 64
	atOnceMin                       = 1
	// trialTime is how long a limit is measured, restTime how long the best one is kept
	// before a higher one is tried again.
	trialTime, restTime = 3 * time.Second, 30 * time.Second
	// gain is the factor by which a higher limit must be faster to be kept.
	gain = 1.05
)

// gate bounds the requests under way. It raises the limit while that makes the import
// faster, and halves it when the service answers that it is busy. It is safe for
// concurrent use.
type gate struct {
	fixed bool // the limit stays
	most  int

	mu       sync.Mutex // guards the fields below
	freed    *sync.Cond
	limit    int
	under    int     // requests under way
	done     int     // since began
	full     bool    // the limit was reached since began
	best     float64 // rate before the last raise
	raised   bool    // the last change was a raise
	began    time.Time
	restTill time.Time
	cutTill  time.Time // until then a busy answer is of the same crowd
}

// newGate returns a gate for a number of nodes. With atOnce it has this limit.
func newGate(nodes, atOnce int) *gate {
	g := &gate{limit: nodes * atOncePerNode, most: nodes * atOncePerNodeMax, began: time.Now()}
	if atOnce > 0 {
		g.fixed, g.limit = true, atOnce
	}
	g.freed = sync.NewCond(&g.mu)
	return g
}

// enter waits until another request may be made, or ctx ends.
func (g *gate) enter(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.freed.Broadcast()
	})()
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.under >= g.limit {
		g.full = true
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g.freed.Wait()
	}
	g.under++
	return ctx.Err()
}

// leave ends a request.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
	g.freed.Signal()
}

// busy halves the limit, once for all requests that were under way.
func (g *gate) busy() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.fixed || now.Before(g.cutTill) {
		return
	}
	g.limit = max(g.limit/2, atOnceMin)
	g.cutTill, g.restTill = now.Add(trialTime), now.Add(restTime)
	g.restart(now)
	g.raised, g.best = false, 0
}

// answered counts a registration, and changes the limit when its trial is over.
func (g *gate) answered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done++
	now := time.Now()
	took := now.Sub(g.began)
	if g.fixed || took < trialTime || now.Before(g.restTill) {
		return
	}
	rate := float64(g.done) / took.Seconds()
	switch {
	case !g.full: // the limit bounds nothing
	case g.raised && rate < gain*g.best:
		g.limit = max(g.limit*4/5, atOnceMin)
		g.raised, g.restTill = false, now.Add(restTime)
	case g.limit < g.most:
		g.best, g.raised = rate, true
		g.limit = min(g.limit*5/4+1, g.most)
		g.freed.Broadcast()
	}
	g.restart(now)
}

// restart starts a new trial. The caller holds mu.
func (g *gate) restart(now time.Time) { g.began, g.done, g.full = now, 0, false }
