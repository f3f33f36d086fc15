package checks

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

// none has no replica at all.
type none struct {
	Replicas
	asked int
}

func (n *none) All() []id.Shard {
	n.asked++
	return []id.Shard{1}
}

func (*none) Group(id.Shard) (*raftfsm.Group, bool) { return nil, false }

func (*none) Out(id.Shard) bool { return false }

func TestComparisonFallsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Every: 10 * time.Minute})
		f := func(wait time.Duration, applied uint64, want bool) {
			t.Helper()
			time.Sleep(wait)
			if got := c.due(1, applied); got != want {
				t.Errorf("at %d entries, %s after the last: due %v, want %v", applied, wait, got, want)
			}
			if want {
				c.put(1, checked{at: time.Now(), index: applied, took: 6 * time.Second})
			}
		}
		f(0, 5000, false) // a new leader waits, too
		f(time.Minute, 5999, false)
		f(0, 6000, true)
		f(10*time.Minute-1, 6001, false)
		f(1, 6001, true)
		f(2*time.Minute-1, 9000, false) // it took 6 s, and 20 times as long there is none
		f(1, 9000, true)
	})
}

func TestChecksTickEachSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas := &none{}
		c := New(Config{Every: 10 * time.Minute, Replicas: replicas, Log: slog.New(slog.DiscardHandler)})
		c.put(1, checked{alarm: "of a group that is led elsewhere now"})
		ctx, cancel := context.WithCancel(t.Context())
		go c.Run(ctx)
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if replicas.asked != 11 || !c.State().Running || len(c.Alarms()) != 0 {
			t.Errorf("%d rounds in 10 s, want 11; state %+v, alarms %q", replicas.asked, c.State(), c.Alarms())
		}
		cancel()
		synctest.Wait()
		if c.State().Running {
			t.Error("it runs after its context has ended")
		}
	})
}
