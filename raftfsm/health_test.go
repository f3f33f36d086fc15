package raftfsm

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestStallLimitGrowsWithEachChangeAndIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(Config{}.withDefaults().Timing)
		defer h.close()
		// limit hangs the disk and measures when the leader falls silent.
		limit := func() time.Duration {
			answered := h.writing()
			defer answered()
			start := time.Now()
			for !h.withhold() {
				time.Sleep(10 * time.Millisecond)
			}
			h.lostLeadership()
			return time.Since(start).Truncate(100 * time.Millisecond)
		}
		for i, want := range []time.Duration{1500, 3000, 6000, 10000, 10000} {
			if got := limit(); got != want*time.Millisecond {
				t.Errorf("change %d: silent after %s, want %s", i, got, want*time.Millisecond)
			}
		}
		h.lostLeadership() // for another reason
		if got := limit(); got != 10*time.Second {
			t.Errorf("after a change for another reason: %s, want 10s", got)
		}
		time.Sleep(stallMemory + time.Second)
		if got := limit(); got != 1500*time.Millisecond {
			t.Errorf("after a quiet time: silent after %s, want 1.5s", got)
		}
		if h.silent() || h.owed() != 0 {
			t.Error("silent although the disk owes nothing")
		}
	})
}

func TestDiskThatAnswersSlowlyIsNotHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHealth(Config{}.withDefaults().Timing)
		defer h.close()
		failed := make(chan error, 1)
		if err := h.start(func(err error) { failed <- err }); err != nil {
			t.Fatal(err)
		}
		// Two writers that overlap all the time, each answered within 20 s.
		first := h.writing()
		for range 10 {
			time.Sleep(10 * time.Second)
			second := h.writing()
			time.Sleep(10 * time.Second)
			first()
			first = second
		}
		first()
		if err := h.failed(); err != nil {
			t.Errorf("taken out: %v", err)
		}
		answered := h.writing()
		defer answered()
		if err := <-failed; !strings.Contains(err.Error(), "30s") {
			t.Errorf("got %v, want 30 s without an answer", err)
		}
	})
}

func TestRaftsLogReachesSlogAtItsLevel(t *testing.T) {
	t.Parallel()
	f := func(level slog.Level, msg, want string, args ...any) {
		t.Helper()
		var b bytes.Buffer
		log := newBridge(slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: level})))
		log.Error(msg, args...)
		if got := b.String(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", msg, got, want)
		}
	}
	f(slog.LevelInfo, "entering leader state", "level=INFO msg=raft event=\"entering leader state\" term=3", "term", 3)
	f(slog.LevelInfo, "failed to heartbeat to", "", "peer", "b")
	f(slog.LevelDebug, "failed to heartbeat to", "level=DEBUG")
	f(slog.LevelInfo, "updating configuration", "servers=\"[a b]\"", "servers", hclog.Fmt("%v", []string{"a", "b"}))
	f(slog.LevelInfo, "updating configuration", "wait=1s", "wait", time.Second)
}
