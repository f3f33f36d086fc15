package calls

import (
	"math"
	"sync"
	"time"
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

// hedges decides when a read is asked at a second replica.
type hedges struct {
	mu    sync.Mutex // guards parts and times
	parts int        // hedgeShare of them are a hedge
	times map[string]*times
}

func newHedges() *hedges { return &hedges{parts: hedgesMax * hedgeShare, times: map[string]*times{}} }

// earn counts a read of so many groups. What it earns itself can be used, however much that is.
func (h *hedges) earn(groups int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = max(h.parts, min(h.parts+groups, max(hedgesMax*hedgeShare, groups)))
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
