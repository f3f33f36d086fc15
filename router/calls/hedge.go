package calls

import (
	"context"
	"math"
	"sync"
	"time"

	"facet/internal/id"
)

// A read that takes longer than most is asked at a second replica as well. The first answer counts, and
// the other read is cancelled, unless its replica may be silent (Dean and Barroso, The tail at scale, 2013):
//
//	replica 1  ├──────────────────────────× cancelled
//	           │← usual time →│
//	replica 2                 ├─────┤ answer
//
// The second replica asks the leader for a read point of its own after the client's request has come, so
// its answer is as fresh as the first one's would be. Each read earns a part of a hedge, so that a
// cluster that is slow as a whole gets little more work.
const (
	// hedgeShare is how many reads earn one hedge. At most hedgesMax wait to be used.
	hedgeShare = 20
	hedgesMax  = 32
	// usualShare is the share of reads that are quicker than the usual time.
	usualShare = .99
	// The usual time is hedgeFirst before there are samplesLeast reads, and never below hedgeLeast: a
	// processor may be busy for as long.
	hedgeFirst, hedgeLeast = 50 * time.Millisecond, 10 * time.Millisecond
	samplesLeast           = 100
	// Each of the last samplesMost reads or so counts.
	samplesMost = 1000
)

// Meter counts hedges. Its methods must be quick.
type Meter interface {
	// Hedged counts a read that was asked at a second replica.
	Hedged()
	// HedgeWon counts a hedge whose second replica answered first.
	HedgeWon()
}

// CallAny carries out a read at one of the replicas of group, or else at its leader.
func CallAny[H, Q, A any](ctx context.Context, c *Caller[H], m Method[H, Q, A], group id.Shard, q Q) (A, error) {
	r := read[H, Q, A]{c: c, m: m, group: group, q: q, answers: make(chan answer[A], readTries)}
	if !r.start(ctx) {
		return CallLeader(ctx, c, m, group, q)
	}
	a, err := r.wait(ctx)
	if _, again := retryable(err); again && ctx.Err() == nil {
		return CallLeader(ctx, c, m, group, q)
	}
	return a, err
}

// readTries is how many replicas a read asks before it asks the leader.
const readTries = 2

// read is a read that asks one replica, and perhaps a second one.
type read[H, Q, A any] struct {
	c       *Caller[H]
	m       Method[H, Q, A]
	group   id.Shard
	q       Q
	ends    []context.CancelFunc
	asked   []id.Member
	answers chan answer[A] // has room for all
}

type answer[A any] struct {
	try int // index in asked
	a   A
	err error
}

// start asks one more replica, in a goroutine that the Caller owns. It returns false if there is none.
func (r *read[H, Q, A]) start(ctx context.Context) bool {
	member, ok := r.c.spread.choose(r.group, r.asked...)
	if !ok {
		return false
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	try := len(r.asked)
	r.asked, r.ends = append(r.asked, member), append(r.ends, cancel)
	r.c.reads.Go(func() {
		defer cancel()
		a, err := tryReplica(ctx, r.c, r.m, r.group, member, r.q)
		r.answers <- answer[A]{try, a, err}
	})
	return true
}

// wait returns the first answer. An error that another replica may not have counts only if no replica
// is left.
func (r *read[H, Q, A]) wait(ctx context.Context) (a A, err error) {
	defer func() {
		for _, end := range r.ends {
			end()
		}
	}()
	r.c.hedges.earn()
	usual := r.c.hedges.usual(r.m.Name)
	late := time.NewTimer(usual)
	defer late.Stop()
	hedged := false
	for running := 1; running > 0; {
		select {
		case got := <-r.answers:
			running--
			if got.err == nil && hedged && got.try > 0 {
				r.c.meter.HedgeWon()
			}
			if got.err == nil || KindOf(got.err) != 0 && KindOf(got.err) != Unavailable || ctx.Err() != nil {
				return got.a, got.err
			}
			err = got.err
			if running == 0 && !Again(err) && len(r.asked) < readTries && r.start(ctx) {
				running++
			}
		case <-late.C:
			if len(r.asked) == readTries {
				continue
			}
			if r.c.spread.late(r.asked[0], usual) {
				r.ends[0] = func() {} // its answer shows that the replica is only slow
			}
			if !r.c.spread.quiet(r.asked[0], silenceMax) && !r.c.hedges.spend() {
				late.Reset(silenceMax)
				continue
			}
			if hedged = r.start(ctx); hedged {
				running++
				r.c.meter.Hedged()
			}
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	return a, err
}

// hedges decides when a read is asked at a second replica.
type hedges struct {
	mu    sync.Mutex // guards parts and times
	parts int        // hedgeShare of them are a hedge
	times map[string]*times
}

func newHedges() *hedges { return &hedges{parts: hedgesMax * hedgeShare, times: map[string]*times{}} }

// earn counts a read.
func (h *hedges) earn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = min(h.parts+1, hedgesMax*hedgeShare)
}

// spend takes a hedge. It returns false if none is left.
func (h *hedges) spend() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parts < hedgeShare {
		return false
	}
	h.parts -= hedgeShare
	return true
}

// usual returns the time after which a read of a method is late.
func (h *hedges) usual(method string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.times[method]
	if t == nil || t.all < samplesLeast {
		return hedgeFirst
	}
	return max(t.quantile(usualShare), hedgeLeast)
}

// took records the time of a read of a method.
func (h *hedges) took(method string, d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.times[method]
	if t == nil {
		t = &times{}
		h.times[method] = t
	}
	t.add(d)
}

// times is a histogram of recent times. A bucket is a quarter of a power of two wide.
type times struct {
	all    int
	counts [4 * 32]int // of microseconds
}

func (t *times) add(d time.Duration) {
	t.counts[min(int(4*math.Log2(float64(max(d.Microseconds(), 1)))), len(t.counts)-1)]++
	if t.all++; t.all < samplesMost {
		return
	}
	t.all = 0
	for i := range t.counts { // the older ones count half
		t.counts[i] = (t.counts[i] + 1) / 2
		t.all += t.counts[i]
	}
}

// quantile returns an upper bound of the given share of the times.
func (t *times) quantile(share float64) time.Duration {
	left := float64(t.all) * share
	for i, n := range t.counts {
		if left -= float64(n); left <= 0 {
			return time.Duration(math.Exp2(float64(i+1)/4)) * time.Microsecond
		}
	}
	return time.Hour // not reached: counts has all
}
