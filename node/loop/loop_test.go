package loop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"facet/node/loop"
)

func TestLoopRemembersItsLastRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := loop.New("some part")
		if got := l.State(); got != (loop.State{Name: "some part"}) {
			t.Errorf("before the start: %+v", got)
		}
		begin, rounds := time.Now(), 0
		ctx, cancel := context.WithCancel(t.Context())
		go l.Every(ctx, time.Minute, func(context.Context) error {
			if rounds++; rounds == 2 {
				return errors.New("no disk")
			}
			return nil
		})
		f := func(wait time.Duration, want loop.State) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			want.Name = "some part"
			if got := l.State(); got != want {
				t.Errorf("after %s: got %+v, want %+v", time.Since(begin), got, want)
			}
		}
		f(0, loop.State{Running: true, Last: begin})
		f(time.Minute, loop.State{Running: true, Last: begin.Add(time.Minute), Error: "no disk"})
		f(time.Minute, loop.State{Running: true, Last: begin.Add(2 * time.Minute)})
		cancel()
		f(time.Minute, loop.State{Last: begin.Add(2 * time.Minute)})
		if rounds != 3 {
			t.Errorf("%d rounds, want 3", rounds)
		}
	})
}
