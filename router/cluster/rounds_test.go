package cluster

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A caller never shares a round that started before the caller arrived.
func TestRoundServesEarlierCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began, ended atomic.Int64
		r := Rounds{Run: func(context.Context) error {
			began.Add(1)
			time.Sleep(10 * time.Millisecond)
			ended.Add(1)
			return nil
		}}
		var work sync.WaitGroup
		for i := range 100 {
			work.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				before := began.Load()
				if err := r.Join(t.Context()); err != nil {
					t.Error(err)
				}
				if ended.Load() <= before {
					t.Errorf("caller %d came after round %d began, and %d rounds had ended when it was let go", i, before, ended.Load())
				}
			})
		}
		work.Wait()
		r.Close()
		if n := began.Load(); n > 12 {
			t.Errorf("%d rounds of 10 ms for 100 callers in 100 ms: they don't share", n)
		}
	})
}

// A caller that waits for a round gets the round's error, or ends with its own
// context.
func TestFollowerGetsRoundsErrorOrDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		r := Rounds{Run: func(context.Context) error { time.Sleep(time.Second); return broken }}
		go func() { _ = r.Join(t.Context()) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := r.Join(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a short deadline: got %v", err)
		}
		if err := r.Join(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
		r.Close()
	})
}

// A round that is due when Rounds closes runs in the caller before it: no goroutine starts after Close.
func TestRoundAfterCloseHasOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		r := Rounds{Run: func(context.Context) error { time.Sleep(time.Second); ended.Add(1); return nil }}
		var work sync.WaitGroup
		work.Go(func() {
			if err := r.Join(t.Context()); err != nil || ended.Load() != 2 {
				t.Errorf("the first caller is back after %d rounds, %v; want 2", ended.Load(), err)
			}
		})
		synctest.Wait()
		work.Go(func() {
			if err := r.Join(t.Context()); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.Close()
		work.Wait()
	})
}
