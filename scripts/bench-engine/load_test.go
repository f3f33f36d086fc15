package main

import (
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

func TestGoalsAreJudgedByTheirSide(t *testing.T) {
	t.Parallel()
	f := func(r row, want string) {
		t.Helper()
		if got := r.cells(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	f(row{what: "a", value: 1.2, unit: "×", goal: 1.25, most: true}, "a\t1.20 ×\t≤ 1.25\tmet\t")
	f(row{what: "a", value: 1.3, unit: "×", goal: 1.25, most: true}, "a\t1.30 ×\t≤ 1.25\tMISSED\t")
	f(row{what: "b", value: .84, goal: .85}, "b\t0.84 \t≥ 0.85\tMISSED\t")
	f(row{what: "c", value: 123.4, unit: "ms", about: "x"}, "c\t123 ms\t\t\tx")
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
