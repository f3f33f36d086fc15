package accuracy

import (
	"testing"

	"facet/engine/score"
)

func TestWeightsCountShares(t *testing.T) {
	t.Parallel()
	var w Weights
	if w.FMR(0) != 0 || w.FNMR(score.Max) != 0 {
		t.Errorf("rates of nothing: %v, %v", w.FMR(0), w.FNMR(score.Max))
	}
	w.Add(100, false, 3)
	w.Add(200, false, 1)
	w.Add(150, true, 1)
	w.Add(300, true, 1)
	for threshold, want := range map[int][2]float64{0: {1, 0}, 100: {1, 0}, 101: {.25, 0}, 151: {.25, .5}, 201: {0, .5}, score.Max + 1: {0, 1}} {
		if got := [2]float64{w.FMR(threshold), w.FNMR(threshold)}; got != want {
			t.Errorf("FMR and FNMR at %d: %v, want %v", threshold, got, want)
		}
	}
	for rate, want := range map[float64]int{0: 201, .2: 201, .25: 101, .9: 101, 1: 0} {
		if got := w.ThresholdFor(rate); got != want {
			t.Errorf("threshold for an FMR of %v: %d, want %d", rate, got, want)
		}
	}
	if w.Mated != 2 || w.NonMated != 2 {
		t.Errorf("%d and %d comparisons", w.Mated, w.NonMated)
	}
}
