package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestEarlyReadCountsIfStateStayed reads a state, which takes a second, while it is confirmed.
func TestEarlyReadCountsIfStateStayed(t *testing.T) {
	t.Parallel()
	refused := errors.New("no leader")
	f := func(what string, applies, fails bool, want, reads int, took time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			index, read := uint64(7), 0
			confirm := func() (int, error) {
				time.Sleep(100 * time.Millisecond)
				if fails {
					return 0, refused
				}
				if applies {
					index++
				}
				return int(index), nil
			}
			began := time.Now()
			got, err := beside(t.Context(), 7, func() uint64 { return index }, confirm, func(ctx context.Context, state int) (int, error) {
				read++
				select {
				case <-time.After(time.Second):
					return state, nil
				case <-ctx.Done():
					return -1, ctx.Err()
				}
			})
			if fails != errors.Is(err, refused) || err == nil && got != want || read != reads || time.Since(began) != took {
				t.Errorf("%s: got %d, %v after %d reads and %v", what, got, err, read, time.Since(began))
			}
		})
	}
	f("the state stayed", false, false, 7, 1, time.Second)
	f("an entry was applied", true, false, 8, 2, 1100*time.Millisecond)
	f("nobody confirms", false, true, 0, 1, 100*time.Millisecond)
}
