package main

import (
	"runtime"
	"testing"
	"time"
)

func TestQueueServesInOrderWithAllItsServers(t *testing.T) {
	t.Parallel()
	const s = time.Second
	got := queue([]time.Duration{0, 0, 0, s / 2, 10 * s}, 2, s)
	want := sample{s, s, 2 * s, 3 * s / 2, s}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d takes %v, want %v", i, got[i], want[i])
		}
	}
}

func TestArrivalsKeepTheirRate(t *testing.T) {
	t.Parallel()
	for a, within := range map[arrivals]int{even: 1, random: 400} {
		at := a.schedule(100, 100*time.Second)
		if n := len(at) - 10_000; n < -within || n > within {
			t.Errorf("arrivals %d: %d in 100 s at 100/s", a, len(at))
		}
		for i := range at[1:] {
			if at[i] > at[i+1] {
				t.Fatalf("arrivals %d: %v is before %v", a, at[i], at[i+1])
			}
		}
	}
}

func TestSampleGivesQuantiles(t *testing.T) {
	t.Parallel()
	var s sample
	for i := range 100 {
		s = append(s, time.Duration(99-i))
	}
	for q, want := range map[float64]time.Duration{0: 0, .5: 50, .99: 99, 1: 99} {
		if got := s.at(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
}

func TestTheRoundOfTheMiddleTailIsTold(t *testing.T) {
	t.Parallel()
	round := func(tail time.Duration) sample {
		s := sample{tail}
		for range 60 {
			s = append(s, 1)
		}
		return s
	}
	s := server{rounds: []sample{round(9), round(2), round(5)}}
	if got := s.middle().tail(); got != 5 {
		t.Errorf("got a tail of %v, want 5", got)
	}
}

func TestABurnTakesItsProcessorTime(t *testing.T) {
	t.Parallel()
	const d = 20 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	burn(d)
	if got := threadTime() - before; got < d || got > 3*d {
		t.Errorf("took %v of processor time, want %v", got, d)
	}
}

func TestTheProcessorsUseLeavesOutWhatIsIdle(t *testing.T) {
	t.Parallel()
	got, err := parseStat("cpu  100 200 300 400 500 10 20 30 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	want := use{all: 1560 * time.Second / ticks, others: 660 * time.Second / ticks}
	if err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"", "cpu 1 2 3", "cpu 1 2 3 x 5 6 7 8"} {
		if _, err := parseStat(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
