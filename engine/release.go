package engine

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// Memory of large images is returned to the system this long after the last one,
	// and not more often than every releaseInterval.
	releaseAfter    = 2 * time.Second
	releaseInterval = 5 * time.Second
)

// releaser returns freed memory to the system. Go itself keeps the pixels of a burst
// of large images until it allocates as much again, or for two minutes.
type releaser struct {
	timer *time.Timer
	last  atomic.Int64 // Unix time of the last release, in nanoseconds
}

func newReleaser() *releaser {
	r := new(releaser)
	r.timer = time.AfterFunc(releaseInterval, r.release)
	r.timer.Stop()
	return r
}

// soon schedules a release, in place of one that is scheduled.
func (r *releaser) soon() {
	next := time.Unix(0, r.last.Load()).Add(releaseInterval)
	r.timer.Reset(max(releaseAfter, time.Until(next)))
}

func (r *releaser) release() {
	r.last.Store(time.Now().UnixNano())
	runtime.GC() // pools keep their content for one collection
	debug.FreeOSMemory()
}

func (r *releaser) stop() { r.timer.Stop() }
