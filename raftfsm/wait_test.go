package raftfsm

import (
	"testing"
	"testing/synctest"
	"time"

	"facet/raftfsm/health"
)

func TestAppliedEntryWakesItsWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFSM(0, nil, health.New(time.Second, time.Second))
		woken := make(map[uint64]int)
		ended := make(chan uint64)
		for _, index := range []uint64{5, 3, 9, 3, 7} {
			go func() {
				if err := f.wait(t.Context(), index, nil); err != nil {
					t.Errorf("wait for index %d: %v", index, err)
				}
				ended <- index
			}()
			synctest.Wait()
		}
		for _, step := range []struct{ applied, waiters uint64 }{{2, 0}, {3, 2}, {7, 2}, {9, 1}} {
			f.advance(step.applied, 1)
			synctest.Wait()
			for range step.waiters {
				woken[<-ended]++
			}
			if left := len(f.waiters); left != 5-woken[3]-woken[5]-woken[7]-woken[9] {
				t.Errorf("index %d: %d waiters are left, %v were woken", step.applied, left, woken)
			}
		}
		if woken[3] != 2 || woken[5] != 1 || woken[7] != 1 || woken[9] != 1 {
			t.Errorf("woken: %v", woken)
		}
	})
}
