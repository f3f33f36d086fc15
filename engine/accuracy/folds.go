package accuracy

import "math"

// Decision is one pair of a list with folds. Its score is −1 if a photograph has no face.
type Decision struct {
	Fold  int
	Mated bool
	Score int
}

// Folds is the result of the protocol of the data set LFW (view 2): for each fold, the share of
// right decisions at the threshold that is best on the other folds.
type Folds struct {
	N int `json:"folds"`
	// Mean is the mean over the folds, StandardError its standard error.
	Mean          float64 `json:"meanShareRight"`
	StandardError float64 `json:"standardError"`
	// ThresholdMin and ThresholdMax are the range of the thresholds.
	ThresholdMin int `json:"thresholdMin"`
	ThresholdMax int `json:"thresholdMax"`
}

// CrossValidate decides each fold at the threshold that is best on the others. If neighbouring
// thresholds are equally good, it takes the middle of the lowest of them. It returns nil for fewer
// than two folds.
func CrossValidate(pairs []Decision) *Folds {
	n := 0
	for _, p := range pairs {
		n = max(n, p.Fold+1)
	}
	if n < 2 {
		return nil
	}
	out := &Folds{N: n, ThresholdMin: Thresholds}
	shares := make([]float64, n)
	for fold := range n {
		t := bestThreshold(pairs, fold)
		out.ThresholdMin, out.ThresholdMax = min(out.ThresholdMin, t), max(out.ThresholdMax, t)
		right, all := 0, 0
		for _, p := range pairs {
			if p.Fold == fold {
				all++
				if (p.Score >= t) == p.Mated {
					right++
				}
			}
		}
		shares[fold] = float64(right) / float64(max(all, 1))
		out.Mean += shares[fold] / float64(n)
	}
	var squares float64
	for _, s := range shares {
		squares += (s - out.Mean) * (s - out.Mean)
	}
	out.StandardError = math.Sqrt(squares / float64(n-1) / float64(n))
	return out
}

// bestThreshold returns the threshold that decides most pairs outside the fold rightly.
func bestThreshold(pairs []Decision, fold int) int {
	var gain [Thresholds]int // of raising the threshold above the score
	right := 0
	for _, p := range pairs {
		switch {
		case p.Fold == fold:
		case p.Score < 0: // never a match
		case p.Mated:
			right++
			gain[p.Score]--
		default:
			gain[p.Score]++
		}
	}
	best, from, to := right, 0, 0
	for t := 1; t < Thresholds; t++ {
		right += gain[t-1]
		switch {
		case right > best:
			best, from, to = right, t, t
		case right == best && to == t-1:
			to = t
		}
	}
	return (from + to) / 2
}
