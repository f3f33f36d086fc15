package engine

import (
	"runtime"
	"testing"
	"time"

	"facet/scripts/bench/machine"
)

func TestQueueServesInOrderWithAllItsServers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	got := queue([]time.Duration{0, 0, 0, s / 2, 10 * s}, 2, s)
	want := machine.Sample{s, s, 2 * s, 3 * s / 2, s}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d takes %v, want %v", i, got[i], want[i])
		}
	}
}

func TestRoundOfMiddleTailCounts(t *testing.T) {
	t.Parallel()
	round := func(tail time.Duration) machine.Sample {
		s := machine.Sample{tail}
		for range 60 {
			s = append(s, 1)
		}
		return s
	}
	s := server{rounds: []machine.Sample{round(9), round(2), round(5)}}
	if got := s.middle().Tail(); got != 5 {
		t.Errorf("got a tail of %v, want 5", got)
	}
}

func TestBurnTakesItsProcessorTime(t *testing.T) {
	t.Parallel()
	const d = 20 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := machine.ThreadTime()
	burn(d)
	if got := machine.ThreadTime() - before; got < d || got > 3*d {
		t.Errorf("took %v of processor time, want %v", got, d)
	}
}
