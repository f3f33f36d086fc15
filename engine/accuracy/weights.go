package accuracy

import "facet/engine/score"

// Weights counts comparisons of both kinds by score, each with a weight.
type Weights struct {
	mated, nonMated [score.Max + 1]float64
	// Mated and NonMated are the numbers of comparisons.
	Mated, NonMated int64
}

// Add counts a comparison.
func (w *Weights) Add(points int, mated bool, weight float64) {
	if mated {
		w.mated[points] += weight
		w.Mated++
	} else {
		w.nonMated[points] += weight
		w.NonMated++
	}
}

// FMR returns the share of the weight of non-mated comparisons at or above the threshold.
func (w *Weights) FMR(threshold int) float64 {
	return above(&w.nonMated, threshold)
}

// FNMR returns the share of the weight of mated comparisons below the threshold.
func (w *Weights) FNMR(threshold int) float64 {
	if w.Mated == 0 {
		return 0
	}
	return 1 - above(&w.mated, threshold)
}

// ThresholdFor returns the lowest threshold whose FMR is at most rate.
func (w *Weights) ThresholdFor(rate float64) int {
	t, most, all := score.Max+1, rate*sum(w.nonMated[:]), 0.
	for t > 0 && all+w.nonMated[t-1] <= most {
		t--
		all += w.nonMated[t]
	}
	return t
}

func above(weights *[score.Max + 1]float64, threshold int) float64 {
	if all := sum(weights[:]); all > 0 {
		return sum(weights[min(threshold, score.Max+1):]) / all
	}
	return 0
}

func sum(weights []float64) (all float64) {
	for _, w := range weights {
		all += w
	}
	return all
}
