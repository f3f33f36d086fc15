package engine

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

const (
	// The releaser returns free memory to the system this long after the last image that calls for
	// it, and at most once in releaseInterval.
	releaseAfter    = 2 * time.Second
	releaseInterval = 5 * time.Second
)

// releaser returns free memory to the system. Go itself would keep the pixels of a burst of large
// images for two minutes, or until it allocates as much again, and as long the pieces of an image
// that the decoders written in Go leave as garbage.
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

// soon schedules a release, instead of an earlier one.
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
