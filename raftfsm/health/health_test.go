package health

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
)

const (
	stall      = 1500 * time.Millisecond
	stallFatal = 30 * time.Second
)

func TestStallLimitDoublesAndResets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(stall, stallFatal)
		defer h.Close()
		// limit hangs the disk and returns the time until the leader falls silent.
		limit := func() time.Duration {
			answered := h.Writing()
			defer answered()
			start := time.Now()
			for !h.Withhold() {
				time.Sleep(10 * time.Millisecond)
			}
			h.LostLeadership()
			return time.Since(start).Truncate(100 * time.Millisecond)
		}
		for i, want := range []time.Duration{1500, 3000, 6000, 10000, 10000} {
			if got := limit(); got != want*time.Millisecond {
				t.Errorf("change %d: silent after %s, want %s", i, got, want*time.Millisecond)
			}
		}
		h.LostLeadership() // for another reason
		if got := limit(); got != 10*time.Second {
			t.Errorf("after a change for another reason: %s, want 10s", got)
		}
		time.Sleep(stallMemory + time.Second)
		if got := limit(); got != 1500*time.Millisecond {
			t.Errorf("after a quiet time: silent after %s, want 1.5s", got)
		}
		if h.Silent() || h.Owed() != 0 {
			t.Error("silent although the disk owes nothing")
		}
	})
}

func TestSlowDiskIsNotHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := New(stall, stallFatal)
		defer h.Close()
		failed := make(chan error, 1)
		must.Do(t, h.Start(func(err error) { failed <- err }))
		// Two writers that overlap all the time, each answered within 20 s.
		first := h.Writing()
		for range 10 {
			time.Sleep(10 * time.Second)
			second := h.Writing()
			time.Sleep(10 * time.Second)
			first()
			first = second
		}
		first()
		if err := h.Failed(); err != nil {
			t.Errorf("taken out: %v", err)
		}
		answered := h.Writing()
		defer answered()
		if err := <-failed; !strings.Contains(err.Error(), "30s") {
			t.Errorf("got %v, want 30 s without an answer", err)
		}
	})
}
