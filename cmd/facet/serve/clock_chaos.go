//go:build chaos

package serve

import (
	"context"
	"os"
	"strings"
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

// wrongClock returns a clock that is off as the file of chaosClock says, until ctx ends. It returns
// nil, the machine's clock, if the environment names no file.
func wrongClock(ctx context.Context) func() time.Time {
	file := os.Getenv(chaosClock)
	if file == "" {
		return nil
	}
	var off atomic.Int64
	look := func() {
		text, _ := os.ReadFile(file) // most of the time there is none
		d, _ := time.ParseDuration(strings.TrimSpace(string(text)))
		off.Store(int64(d))
	}
	look()
	go func() { // ends with ctx
		for ctx.Err() == nil {
			look()
			time.Sleep(chaosClockLook)
		}
	}()
	return func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
}
