package accuracy

import "facet/engine/score"

// Thresholds is the number of distinct thresholds: from 0, at which everything matches, to
// score.Max+1, at which nothing does.
const Thresholds = score.Max + 2

// Histogram counts comparisons by score.
type Histogram [score.Max + 1]int64

// Total returns the number of comparisons.
func (h *Histogram) Total() int64 { return h.AtLeast(0) }

// AtLeast returns the number of comparisons that match at the threshold.
func (h *Histogram) AtLeast(threshold int) int64 {
	var n int64
	for s := max(threshold, 0); s < len(h); s++ {
		n += h[s]
	}
	return n
}

// Curve holds FMR and FNMR at each threshold: FMR never rises, FNMR never falls.
type Curve struct {
	FMR, FNMR [Thresholds]float64
}

// CurveOf returns the curve of mated and non-mated comparisons. Without comparisons of a kind its
// rates are 0.
func CurveOf(mated, nonMated *Histogram) *Curve {
	c := new(Curve)
	m, n := float64(max(mated.Total(), 1)), float64(max(nonMated.Total(), 1))
	var below int64
	above := nonMated.Total()
	for t := range Thresholds {
		c.FMR[t], c.FNMR[t] = float64(above)/n, float64(below)/m
		if t < len(mated) {
			below += mated[t]
			above -= nonMated[t]
		}
	}
	return c
}

// EER returns the equal error rate and the lowest threshold at which FNMR is not below FMR. If the
// curve jumps over equality, as it does with integer scores, the rate is where the straight line of
// the jump crosses it.
func (c *Curve) EER() (rate float64, threshold int) {
	t := 0
	for t < Thresholds-1 && c.FNMR[t] < c.FMR[t] {
		t++
	}
	if t == 0 {
		return c.FMR[0], 0
	}
	before, after := c.FNMR[t-1]-c.FMR[t-1], c.FNMR[t]-c.FMR[t]
	if after <= before { // both 0: nothing was compared
		return c.FMR[t], t
	}
	share := -before / (after - before)
	return c.FMR[t-1] + share*(c.FMR[t]-c.FMR[t-1]), t
}

// ThresholdFor returns the lowest threshold whose FMR is at most rate.
func (c *Curve) ThresholdFor(rate float64) int {
	t := 0
	for t < Thresholds-1 && c.FMR[t] > rate {
		t++
	}
	return t
}
