package accuracy

import (
	"math"
	"testing"
)

// scores makes a histogram.
func scores(list ...int) *Histogram {
	h := new(Histogram)
	for _, s := range list {
		h[s]++
	}
	return h
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestRatesFollowDefinition(t *testing.T) {
	t.Parallel()
	c := CurveOf(scores(3, 5, 5, 9999), scores(0, 3, 5))
	f := func(threshold int, fmr, fnmr float64) {
		t.Helper()
		near(t, "FMR", c.FMR[threshold], fmr, 1e-15)
		near(t, "FNMR", c.FNMR[threshold], fnmr, 1e-15)
	}
	f(0, 1, 0)
	f(1, 2./3, 0)
	f(3, 2./3, 0) // a score at the threshold matches
	f(4, 1./3, .25)
	f(5, 1./3, .25)
	f(6, 0, .75)
	f(9999, 0, .75)
	f(10_000, 0, 1)
}

func TestEERIsWhereRatesCross(t *testing.T) {
	t.Parallel()
	f := func(mated, nonMated *Histogram, want float64, wantThreshold int) {
		t.Helper()
		got, threshold := CurveOf(mated, nonMated).EER()
		near(t, "EER", got, want, 1e-12)
		if threshold != wantThreshold {
			t.Errorf("threshold is %d, want %d", threshold, wantThreshold)
		}
	}
	f(scores(7), scores(3), 0, 4)         // apart
	f(scores(3), scores(7), 1, 4)         // the wrong way round
	f(scores(5, 7), scores(3, 5), .25, 6) // from (.5, 0) at 5 to (0, .5) at 6
	f(scores(5), scores(5), .5, 6)        // one score for all: from (1, 0) to (0, 1)
	f(scores(1, 5, 5, 5), scores(0, 0, 0, 2), .25, 2)
	f(scores(1, 2, 3, 4), scores(1, 2, 3, 4), .5, 3)
	// From (2/3, 0) at 4 to (0, 1/2) at 5: crossing at share 4/7 of the line.
	f(scores(4, 9), scores(0, 4, 4), 2./3*3/7, 5)
	f(scores(), scores(), 0, 0)
}

func TestThresholdForIsLowest(t *testing.T) {
	t.Parallel()
	c := CurveOf(scores(9), scores(1, 1, 4, 8))
	f := func(rate float64, want int) {
		t.Helper()
		if got := c.ThresholdFor(rate); got != want {
			t.Errorf("threshold for %v is %d, want %d", rate, got, want)
		}
	}
	f(1, 0)
	f(.5, 2)
	f(.49, 5)
	f(.25, 5)
	f(.2, 9)
	f(0, 9)
}

func TestWilsonGivesPublishedIntervals(t *testing.T) {
	t.Parallel()
	// Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
	f := func(events, trials int64, low, high float64) {
		t.Helper()
		in := Wilson(events, trials)
		near(t, "low", in.Low, low, 5e-5)
		near(t, "high", in.High, high, 5e-5)
	}
	f(81, 263, .2553, .3662)
	f(15, 148, .0624, .1605)
	f(0, 20, 0, .1611)
	f(1, 29, .0061, .1718)
	f(0, 0, 0, 1)
	if in := Wilson(29, 29); in.High != 1 {
		t.Errorf("all of 29: high is %v, want 1", in.High)
	}
}

func TestDeviateIsNormalQuantile(t *testing.T) {
	t.Parallel()
	near(t, "deviate of .5", Deviate(.5), 0, 1e-12)
	near(t, "deviate of .975", Deviate(.975), z95, 1e-9)
	near(t, "deviate of 1e-6", Deviate(1e-6), -4.753424, 1e-5)
	if !math.IsInf(Deviate(0), -1) || !math.IsInf(Deviate(1), 1) {
		t.Errorf("deviates of 0 and 1 are %v and %v", Deviate(0), Deviate(1))
	}
}

func TestRatesAreWrittenInOneUnit(t *testing.T) {
	t.Parallel()
	f := func(r Rate, want string) {
		t.Helper()
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	in := func(low, high float64) *Interval { return &Interval{low, high} }
	f(Rate{Value: .0506, Interval: in(.0185, .11)}, "5.06 % [1.85–11.00]")
	f(Rate{Value: .146, Interval: in(.128, .165)}, "14.6 % [12.8–16.5]")
	f(Rate{Value: .99999, Interval: in(.998, 1)}, "100.00 % [99.80–100.00]")
	f(Rate{Value: 9.96e-6, Interval: in(0, 2e-3)}, "1.0e-5 [0–2.0e-3]")
	f(Rate{Interval: in(0, .0026)}, "0.00 % [0.00–0.26]")
	f(Rate{Interval: in(0, 1e-5)}, "0 [0–1.0e-5]")
	f(Rate{Value: .25}, "25.0 %")
	f(Rate{Value: .9999}, "> 99.9 %")
	f(Rate{}, "0")
}
