//go:build chaos

package serve

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// chaosClock names the environment variable with the name of a file. The file says how far
	// the node's clock is off, as a duration. Without the file the clock is right.
	chaosClock = "CHAOS_CLOCK"
	// chaosClockLook is how often the file is read.
	chaosClockLook = 50 * time.Millisecond
)

// wrongClock returns a clock that is off as the file of chaosClock says, until closing is called. The
// clock is nil, the machine's, if the environment names no file.
func wrongClock() (wall func() time.Time, closing func()) {
	file := os.Getenv(chaosClock)
	if file == "" {
		return nil, func() {}
	}
	var off atomic.Int64
	look := func() {
		text, _ := os.ReadFile(file) // most of the time there is none
		d, _ := time.ParseDuration(strings.TrimSpace(string(text)))
		off.Store(int64(d))
	}
	look()
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			look()
			time.Sleep(chaosClockLook)
		}
	})
	closing = func() {
		stop()
		work.Wait()
	}
	return func() time.Time { return time.Now().Add(time.Duration(off.Load())) }, closing
}
