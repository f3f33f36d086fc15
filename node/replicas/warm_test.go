package replicas

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
)

// cold are two shards whose templates are closed, and the router before them.
type cold struct {
	led, complete, behind, damaged bool
	opened                         int // how often the first one's templates were
}

func (c *cold) Led() error {
	if !c.led {
		return errors.New("no leader")
	}
	return nil
}

func (c *cold) Complete() bool { return c.complete }

func (*cold) Numbers() []id.Shard { return []id.Shard{1, 2} }

func (*cold) SyncMeta(context.Context) error { return nil }

func (c *cold) CatchUp(_ context.Context, shard id.Shard) error {
	if c.behind && shard == 2 {
		return errors.New("the release of the leader can't tell")
	}
	return nil
}

func (c *cold) Warm(_ context.Context, shard id.Shard) error {
	if shard == 1 {
		c.opened++
	} else if c.damaged {
		return errors.New("a template can't be opened")
	}
	return nil
}

// warming runs a warmer of c for a test in a bubble. A turn of its replicas is free once it has told.
func warming(t *testing.T, c *cold) (w *Warmer, told *int) {
	t.Helper()
	told = new(int)
	r := &Replicas{checks: make(chan struct{}, 1), cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	r.checks <- struct{}{}
	w = NewWarmer(r, c, func() {
		if *told++; len(r.checks) > 0 {
			t.Error("no replica can be hashed")
		}
	})
	w.replicas = c
	ctx, cancel := context.WithCancel(t.Context())
	go w.Run(ctx)
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return w, told
}

func TestWarmerReportsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cold{}
		w, told := warming(t, c)
		f := func(what string, wait time.Duration, want bool) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if w.Warmed() != want || *told > 1 || (*told == 1) != want {
				t.Errorf("%s: warmed %v, told %d times; want %v", what, w.Warmed(), *told, want)
			}
		}
		f("without leaders", 100*time.Millisecond, false)
		if c.opened != 5 {
			t.Errorf("looked %d times in 100 ms, want each 20 ms", c.opened)
		}
		c.led = true
		f("with a replica to come", time.Minute, false)
		c.complete = true
		f("with all", warmSoon, true)
		c.opened = 0
		f("from then on", 10*time.Second, true)
		if c.opened != 10 {
			t.Errorf("looked %d times in 10 s, want each second", c.opened)
		}
	})
}

func TestWarmerGivesUpOnLeaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _ := warming(t, &cold{led: true, complete: true, behind: true})
		time.Sleep(catchUpMost)
		if w.Warmed() {
			t.Error("it did not wait for what leaders have committed")
		}
		time.Sleep(3 * warmSoon)
		if !w.Warmed() {
			t.Errorf("it still waits after %s", catchUpMost)
		}
	})
}

func TestWarmerRestsAfterFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &cold{led: true, complete: true, damaged: true}
		w, told := warming(t, c)
		time.Sleep(warmSoon + time.Millisecond)
		synctest.Wait()
		if *told != 1 || w.State().Error == "" {
			t.Errorf("told %d times, state %+v; want a node that serves what it can", *told, w.State())
		}
		c.opened = 0
		time.Sleep(10 * time.Minute)
		if c.opened != 10 {
			t.Errorf("looked %d times in 10 minutes, want each minute", c.opened)
		}
		c.damaged = false
		time.Sleep(warmPause)
		if synctest.Wait(); w.State().Error != "" {
			t.Errorf("state %+v after all were opened", w.State())
		}
	})
}
