package tick

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The clock of a bubble begins at midnight.
func TestWaitsEndTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, f := range []struct{ at, want time.Duration }{
			{0, 500 * time.Millisecond},
			{time.Millisecond, 500 * time.Millisecond},
			{499 * time.Millisecond, 500 * time.Millisecond},
			{500 * time.Millisecond, time.Second},
		} {
			began := time.Now()
			time.Sleep(f.at)
			if err := Pause(t.Context(), 500*time.Millisecond); err != nil || time.Since(began) != f.want {
				t.Errorf("a pause from %s on ended after %s with %v, want %s", f.at, time.Since(began), err, f.want)
			}
			time.Sleep(2*time.Second - time.Since(began)%time.Second)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := Pause(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a pause whose context ends: %v", err)
		}
	})
}

// Go subtracts readings of the monotonic clock if both times have one. It prints them as m.
func TestTicksCountByMonotonicClock(t *testing.T) {
	t.Parallel()
	if !strings.Contains(origin.String(), " m=") {
		t.Error("ticks are counted from a moment of the wall clock")
	}
	if d := time.Duration(origin.UnixNano() % int64(time.Hour)); d != 0 {
		t.Errorf("ticks are counted from %s after a full hour", d)
	}
}
