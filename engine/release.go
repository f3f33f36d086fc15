package engine

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The releaser returns free memory to the system this long after an image that calls for it.
	// The pause after a release is at least releaseInterval, and at least releaseShare times as
	// long as the release took: a large heap takes seconds of all processors.
	releaseAfter    = 2 * time.Second
	releaseInterval = 5 * time.Second
	releaseShare    = 50
)

// releaser returns free memory to the system. Go itself would keep the pixels of a burst of large
// images for two minutes, or until it allocates as much again, and as long the pieces of an image
// that the decoders written in Go leave as garbage.
type releaser struct {
	free    func() // returns free memory
	timer   *time.Timer
	pending atomic.Bool // the timer runs

	mu   sync.Mutex // held during a release, guards next
	next time.Time  // before it nothing is released
}

func newReleaser(free func()) *releaser {
	r := &releaser{free: free}
	r.timer = time.AfterFunc(releaseInterval, r.release)
	r.timer.Stop()
	return r
}

// soon schedules a release. It leaves one that is scheduled as it is, so that steady traffic does
// not postpone it.
func (r *releaser) soon() {
	if r.pending.CompareAndSwap(false, true) {
		r.timer.Reset(releaseAfter)
	}
}

func (r *releaser) release() {
	if !r.mu.TryLock() {
		r.timer.Reset(releaseAfter)
		return
	}
	defer r.mu.Unlock()
	if wait := time.Until(r.next); wait > 0 {
		r.timer.Reset(wait)
		return
	}
	r.pending.Store(false) // the garbage of later images may be missed
	began := time.Now()
	r.free()
	ended := time.Now()
	r.next = ended.Add(max(releaseInterval, releaseShare*ended.Sub(began)))
}

func (r *releaser) stop() { r.timer.Stop() }

// freeMemory collects garbage and returns its pages, which the system fills with zeros. A collection
// alone would clear nothing.
func freeMemory() {
	runtime.GC() // pools keep their content for one collection
	debug.FreeOSMemory()
}
