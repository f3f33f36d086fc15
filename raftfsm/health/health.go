package health

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stallLimitMax and stallMemory keep uniformly slow disks from passing the leadership
	// round and round. Each change of leader that a stall caused doubles the limit, up to
	// stallLimitMax. The limit is reset after stallMemory without such a change.
	stallLimitMax = 10 * time.Second
	stallMemory   = 10 * time.Minute
)

// Monitor records how long the disk has owed an answer, and whether the group was taken
// out of service. After Fail no message leaves or enters the group, so no other member
// sees what raft does. Until the group is closed, the stores may therefore give raft any
// answer that keeps it from panicking.
type Monitor struct {
	stall      time.Duration
	stallFatal time.Duration

	broken chan struct{} // closed by Fail

	silenced atomic.Bool // something was withheld since the last change of leader

	// mu guards the fields below. Never held across a call out of this file.
	mu        sync.Mutex
	fatal     func(error) // nil until Start
	closed    bool
	err       error // why the group was taken out
	writes    int   // handed to the disk, not yet answered
	since     time.Time
	watch     *time.Timer
	limit     time.Duration // the present limit; 0: stall
	limitFrom time.Time
}

// New returns the monitor of a member. stall is how long the disk may owe an answer before
// Silent reports true, and stallFatal how long before the group is taken out.
func New(stall, stallFatal time.Duration) *Monitor {
	return &Monitor{stall: stall, stallFatal: stallFatal, broken: make(chan struct{})}
}

// Start sets the function that is called when the group is taken out. It returns the
// reason if that has happened already.
func (h *Monitor) Start(fatal func(error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fatal = fatal
	return h.err
}

// Fail takes the group out for the reason err. Later calls have no effect.
func (h *Monitor) Fail(err error) {
	h.mu.Lock()
	if h.closed || h.err != nil {
		h.mu.Unlock()
		return
	}
	h.err = err
	close(h.broken)
	fatal := h.fatal
	h.mu.Unlock()
	if fatal != nil {
		// Its own goroutine: the callback may close the group, which waits for the
		// goroutine that found the fault.
		go fatal(err)
	}
}

// Broken returns a channel that is closed when the group is taken out.
func (h *Monitor) Broken() <-chan struct{} { return h.broken }

// Failed returns why the group was taken out, or nil.
func (h *Monitor) Failed() error {
	select {
	case <-h.broken:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.err
	default:
		return nil
	}
}

// Close stops the timer. Later calls of Fail have no effect: they come from stores that
// are being closed.
func (h *Monitor) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.watch != nil {
		h.watch.Stop()
	}
}

// Writing records that a write was handed to the disk. The caller calls answered when the
// disk has answered.
func (h *Monitor) Writing() (answered func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes++
	if h.writes == 1 {
		h.since = time.Now()
		h.arm()
	}
	return h.answered
}

func (h *Monitor) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writes--
	h.since = time.Now() // an answer is progress, for those that still wait too
	h.watch.Stop()
	if h.writes > 0 {
		h.arm()
	}
}

// arm starts the timer for stallFatal. mu is held.
func (h *Monitor) arm() {
	if h.closed {
		return
	}
	if h.watch == nil {
		h.watch = time.AfterFunc(h.stallFatal, h.hung)
		return
	}
	h.watch.Reset(h.stallFatal)
}

func (h *Monitor) hung() {
	if owed := h.Owed(); owed >= h.stallFatal {
		h.Fail(fmt.Errorf("the disk has not answered for %s", owed.Round(time.Millisecond)))
	}
}

// Owed returns how long the disk has owed an answer, or 0 if it owes none.
func (h *Monitor) Owed() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writes == 0 {
		return 0
	}
	return time.Since(h.since)
}

// Silent reports whether a leader must fall silent, so that another is elected.
func (h *Monitor) Silent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writes == 0 {
		return false
	}
	limit := h.stall
	if h.limit > 0 && time.Since(h.limitFrom) < stallMemory {
		limit = h.limit
	}
	return time.Since(h.since) > limit
}

// Withhold is Silent for a sender of messages. It records that a message was withheld.
func (h *Monitor) Withhold() bool {
	if !h.Silent() {
		return false
	}
	h.silenced.Store(true)
	return true
}

// LostLeadership doubles the limit if a message was withheld since the last change of
// leader: then the silence was the reason.
func (h *Monitor) LostLeadership() {
	if !h.silenced.Swap(false) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limit == 0 || time.Since(h.limitFrom) >= stallMemory {
		h.limit = h.stall
	}
	h.limit, h.limitFrom = min(2*h.limit, stallLimitMax), time.Now()
}
