package machine_test

import (
	"os"
	"testing"
	"time"

	"facet/scripts/bench/machine"
)

func TestQuantilesAreOfTheSortedSample(t *testing.T) {
	t.Parallel()
	s := machine.Sample{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond, 10 * time.Millisecond}
	f := func(q, want float64) {
		t.Helper()
		if got := s.MS(q); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	f(0, 1)
	f(.5, 3)
	f(1, 10)
	if got := s.MeanMS(); got != 4 {
		t.Errorf("mean: got %v, want 4", got)
	}
	if got := machine.Sample(nil).MS(.5); got != 0 {
		t.Errorf("of none: got %v, want 0", got)
	}
}

func TestProcessorTimesAgree(t *testing.T) {
	t.Parallel()
	own := time.Duration(0)
	for begin := time.Now(); own < 200*time.Millisecond && time.Since(begin) < time.Minute; {
		var err error
		if own, err = machine.OwnCPU(); err != nil {
			t.Fatal(err)
		}
	}
	proc, err := machine.CPU(os.Getpid())
	if err != nil || proc < own*3/4 {
		t.Errorf("/proc says %v, %v, getrusage %v", proc, err, own)
	}
}
