package calls

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
)

// replies is a network whose members answer reads after some time; a negative time is never.
type replies struct {
	mu        sync.Mutex
	takes     map[id.Member]time.Duration
	once      time.Duration // instead, for the next call of a
	calls     map[id.Member]int
	cancelled int
}

func newReplies() *replies {
	const usual = 2 * time.Millisecond
	return &replies{takes: map[id.Member]time.Duration{"a": usual, "b": usual, "c": usual}, calls: map[id.Member]int{}}
}

func (r *replies) set(takes time.Duration, members ...id.Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range members {
		r.takes[m] = takes
	}
	clear(r.calls)
}

func (r *replies) total() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, calls := range r.calls {
		n += calls
	}
	return n
}

func (r *replies) call(ctx context.Context, to id.Member) ([]byte, error) {
	r.mu.Lock()
	takes := r.takes[to]
	if r.calls[to]++; to == "a" && r.once > 0 {
		takes, r.once = r.once, 0
	}
	r.mu.Unlock()
	var done <-chan time.Time
	if takes >= 0 {
		done = time.After(takes)
	}
	select {
	case <-done:
		return fine("yes"), nil
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancelled++
		return nil, Unreachable(ctx.Err())
	}
}

// counted counts hedges.
type counted struct{ hedged, won atomic.Int64 }

func (c *counted) Hedged()   { c.hedged.Add(1) }
func (c *counted) HedgeWon() { c.won.Add(1) }

// reads makes reads, several at once, and returns their times in order.
func (r *replies) reads(t *testing.T, c *Caller, n, atOnce int) (times []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var work sync.WaitGroup
	for range atOnce {
		work.Go(func() {
			for range n / atOnce {
				start := time.Now()
				if a, err := CallAny(t.Context(), c, echo, 3, "?"); err != nil || a != "yes" {
					t.Errorf("got %q, %v", a, err)
				}
				mu.Lock()
				times = append(times, time.Since(start))
				mu.Unlock()
			}
		})
	}
	work.Wait()
	slices.Sort(times)
	return times
}

func hedging(t *testing.T) (*replies, *Caller, *counted) {
	r, m := newReplies(), &counted{}
	c := newCaller(r.call)
	c.meter = m
	t.Cleanup(c.Close)
	return r, c, m
}

func TestLateReadIsAskedElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c, m := hedging(t)
		r.reads(t, c, 300, 12)
		r.set(2*time.Millisecond, "a")
		r.once = time.Second
		times := r.reads(t, c, 300, 12)
		if last := times[len(times)-1]; last > 2*hedgeLeast {
			t.Errorf("a read took %s beside a member that takes a second for it", last)
		}
		synctest.Wait()
		if m.hedged.Load() != 1 || m.won.Load() != 1 || r.cancelled != 1 || r.total() != 301 {
			t.Errorf("%d hedges, %d won, %d calls, %d of them cancelled: want 1, 1, 301, 1", m.hedged.Load(), m.won.Load(), r.total(), r.cancelled)
		}
	})
}

// When all members are slower than they were, hedges stay within their share.
func TestHedgesStayWithinShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c, m := hedging(t)
		r.reads(t, c, 2000, 4)
		if m.hedged.Load() > 0 {
			t.Errorf("%d hedges of usual reads", m.hedged.Load())
		}
		const rounds, each = 20, 10
		for n := range rounds { // times that rise this quickly keep the reads late
			takes := time.Duration(12*math.Pow(1.25, float64(n))) * time.Millisecond
			r.set(takes, "a", "b", "c")
			r.reads(t, c, each, 1)
		}
		if n := m.hedged.Load(); n == 0 || n > rounds*each/hedgeShare+hedgesMax {
			t.Errorf("%d hedges of %d late reads", n, rounds*each)
		}
	})
}

// A silent member costs single reads, and serves again soon after it is back.
func TestSilentMemberCostsFewReads(t *testing.T) {
	t.Parallel()
	for _, atOnce := range []int{1, 24} {
		synctest.Test(t, func(t *testing.T) {
			r, c, m := hedging(t)
			r.reads(t, c, 1200, atOnce)
			r.set(-1, "b")
			before := time.Now()
			times := r.reads(t, c, 6_000, atOnce)
			took := time.Since(before)
			if p99, last := times[len(times)*99/100], times[len(times)-1]; p99 > 3*time.Millisecond || last > 2*hedgeLeast {
				t.Errorf("%d at once: p99 %s, longest %s with a silent member", atOnce, p99, last)
			}
			if n := r.calls["b"]; n > atOnce+10+int(took/lateMax) || m.hedged.Load() > int64(n) {
				t.Errorf("%d at once: %d calls of the silent member in %s, %d hedges", atOnce, n, took, m.hedged.Load())
			}
			r.set(2*time.Millisecond, "b")
			time.Sleep(lateMax)
			if r.reads(t, c, 1200, atOnce); r.calls["b"] < 300 {
				t.Errorf("%d at once: %d of 1200 calls of the member that is back", atOnce, r.calls["b"])
			}
		})
	}
}

// A member that is slow and answers is called as before: its reads are only hedged.
func TestSlowMemberKeepsItsReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, c, m := hedging(t)
		r.reads(t, c, 1200, 12)
		r.set(25*time.Millisecond, "b")
		r.reads(t, c, 6_000, 12)
		if n := r.calls["b"]; n < 150 || m.hedged.Load() > 6_000/hedgeShare+hedgesMax {
			t.Errorf("%d of 12000 calls of the slow member, %d hedges", n, m.hedged.Load())
		}
	})
}

// A fault of one replica is not the answer if another one has none.
func TestFaultyReplicaIsNotLast(t *testing.T) {
	t.Parallel()
	calls := 0
	c := newCaller(func(context.Context, id.Member) ([]byte, error) {
		if calls++; calls == 1 {
			return nil, DecodeFault([]byte{0xff})
		}
		return fine("yes"), nil
	})
	if a, err := CallAny(t.Context(), c, echo, 3, "?"); err != nil || a != "yes" || calls != 2 {
		t.Errorf("got %q, %v after %d calls", a, err, calls)
	}
	c.Close()
}
