// Package tick lets the waits of a process end together. At rest, waking a process costs more
// than the little that it then does.
package tick

import (
	"context"
	"time"
)

// Interval is the shortest time between two ticks. Periodic work that no request waits for has
// an interval that is a multiple of it.
const Interval = 250 * time.Millisecond

// origin is the moment from which ticks are counted: a full hour before the start of the
// process. So nodes tick at the same moments if their clocks agree when they start. From then
// on the monotonic clock counts: a jump of the wall clock neither stops nor bunches ticks.
var origin = before(time.Now())

// before returns the last full hour before t, with t's reading of the monotonic clock.
func before(t time.Time) time.Time {
	return t.Add(-time.Duration(t.UnixNano() % int64(time.Hour)))
}

// Until returns the time until the next tick of interval, which divides an hour.
func Until(interval time.Duration) time.Duration {
	d := -time.Since(origin) % interval
	if d <= 0 {
		d += interval
	}
	return d
}

// Pause waits for the next tick of interval. It returns ctx's error if ctx ends first.
func Pause(ctx context.Context, interval time.Duration) error {
	timer := time.NewTimer(Until(interval))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
