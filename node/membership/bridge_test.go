package membership

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/node/transport/memnet"
)

// countingHandler counts warnings.
type countingHandler struct {
	slog.Handler
	warnings *atomic.Int64
}

func (h countingHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		h.warnings.Add(1)
	}
	return nil
}

func (countingHandler) Enabled(context.Context, slog.Level) bool { return true }

// The world has real memberlists. 1,000 packets of garbage a minute come from one
// host, each from a port of its own.
func TestGossipGarbageWarnsOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(1)
		var warnings atomic.Int64
		w := newWorld(t)
		a := w.join(t, network.Host("10.0.0.1"), 1, 1, "10.0.0.1:1", func(c *Config) {
			c.Log = slog.New(countingHandler{warnings: &warnings})
		})
		const minutes, perMinute = 3, 1000
		for i := range minutes * perMinute {
			from, err := network.Host("10.0.0.9").ListenPacket(t.Context(), fmt.Sprintf("10.0.0.9:%d", 1000+i))
			must.Do(t, err)
			to, err := network.Host("10.0.0.9").Resolve(t.Context(), "10.0.0.1:1")
			must.Do(t, err)
			if _, err := from.WriteTo(bytes.Repeat([]byte{byte(i)}, 100), to[0]); err != nil {
				t.Fatal(err)
			}
			must.Do(t, from.Close())
			time.Sleep(time.Minute / perMinute)
		}
		if got := warnings.Load(); got < 1 || got > minutes {
			t.Errorf("%d warnings in %d minutes, want one a minute", got, minutes)
		}
		if got := a.Refused(); got != minutes*perMinute {
			t.Errorf("counted %d packets of %d", got, minutes*perMinute)
		}
		stopAll(t, a)
	})
}

func TestManySourcesShareOneWarning(t *testing.T) {
	t.Parallel()
	var warnings atomic.Int64
	b := newBridge(slog.New(countingHandler{warnings: &warnings}))
	began := time.Now()
	said := 0
	for i := range 20_000 { // within half a minute
		if _, ok := b.due(fmt.Sprint(i), began.Add(time.Duration(i)*time.Millisecond)); ok {
			said++
		}
	}
	if said != warnSourcesMax+1 || len(b.sources) != warnSourcesMax {
		t.Errorf("%d warnings about %d sources, want %d about %d", said, len(b.sources), warnSourcesMax+1, warnSourcesMax)
	}
	more, ok := b.due("new", began.Add(2*time.Minute))
	if !ok || more != 0 || len(b.sources) != 1 {
		t.Errorf("after two minutes: due %v, %d more, %d sources", ok, more, len(b.sources))
	}
}

func TestWarningNamesWhatItLeavesOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		b := newBridge(slog.New(slog.NewTextHandler(&out, nil)))
		write := func(text string) {
			if _, err := b.Write([]byte("2026/11/24 02:40:28 " + text + "\n")); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			write("[ERR] memberlist: missing message type byte from=10.0.0.9:77")
			write(`[ERR] memberlist: discarding packet with unacceptable label "from=10.0.0.1:1": from=10.0.0.9:78`)
			write("[ERR] memberlist: Push/Pull with a failed: timeout")
			write("[ERR] memberlist: Push/Pull with b failed: timeout")
			write("[WARN] memberlist: Refuting a dead message (from: a)")
		}
		time.Sleep(warnInterval)
		write("[ERR] memberlist: missing message type byte from=10.0.0.9:79")
		if b.refused.Load() != 11 {
			t.Errorf("counted %d", b.refused.Load())
		}
	})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 || !strings.HasSuffix(lines[3], "more=9") {
		t.Errorf("got %d lines:\n%s", len(lines), out.String())
	}
}
