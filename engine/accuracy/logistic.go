package accuracy

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// ErrLogistic is returned when the cases of a fit do not determine it.
var ErrLogistic = errors.New("accuracy: the cases do not determine a logistic regression")

const (
	// ridge pulls the weights of standardised measurements towards 0, so that cases that a weight
	// separates without error give finite weights.
	ridge         = 1e-4
	logisticSteps = 100
	logisticDone  = 1e-9
)

// Case is one case of a logistic regression.
type Case struct {
	X []float64
	// Share is how much of the case is true, 0 to 1.
	Share float64
	// Weight is how much the case counts.
	Weight float64
}

// Logistic is P(true) = 1 / (1 + exp(−(Bias + Σ Weights × X))).
type Logistic struct {
	Bias    float64
	Weights []float64
}

// Sum returns the log odds of x.
func (l *Logistic) Sum(x []float64) float64 {
	sum := l.Bias
	for i, w := range l.Weights {
		sum += w * x[i]
	}
	return sum
}

// FitLogistic returns the regression with the largest likelihood less a small ridge, by Newton's
// method. All cases have the same number of measurements.
func FitLogistic(cases []Case) (*Logistic, error) {
	if len(cases) == 0 {
		return nil, ErrLogistic
	}
	mean, spread, total := moments(cases)
	if !(total > 0) {
		return nil, ErrLogistic
	}
	n := len(mean) + 1
	at := make([]float64, n) // the bias, then the weights of standardised measurements
	z := make([]float64, n)
	for range logisticSteps {
		gradient, hessian := make([]float64, n), make([][]float64, n)
		for i := range hessian {
			hessian[i] = make([]float64, n)
			hessian[i][i] = ridge
			gradient[i] = -ridge * at[i]
		}
		for _, c := range cases {
			standardise(z, c.X, mean, spread)
			var sum float64
			for i := range z {
				sum += at[i] * z[i]
			}
			p := 1 / (1 + math.Exp(-sum))
			w := c.Weight / total
			for i := range z {
				gradient[i] += w * (c.Share - p) * z[i]
				for j := range z {
					hessian[i][j] += w * p * (1 - p) * z[i] * z[j]
				}
			}
		}
		step, ok := solve(hessian, gradient)
		if !ok {
			return nil, ErrLogistic
		}
		var moved float64
		for i := range at {
			at[i] += step[i]
			moved = max(moved, math.Abs(step[i]))
		}
		if moved < logisticDone {
			break
		}
	}
	l := &Logistic{Bias: at[0], Weights: make([]float64, n-1)}
	for i := range l.Weights {
		l.Weights[i] = at[i+1] / spread[i]
		l.Bias -= l.Weights[i] * mean[i]
	}
	if math.IsNaN(l.Bias) || math.IsInf(l.Bias, 0) {
		return nil, ErrLogistic
	}
	return l, nil
}

// moments returns the measurements' weighted means and standard deviations, and the sum of weights.
// The deviation of a constant measurement is 1.
func moments(cases []Case) (mean, spread []float64, total float64) {
	mean, spread = make([]float64, len(cases[0].X)), make([]float64, len(cases[0].X))
	for _, c := range cases {
		total += c.Weight
		for i, v := range c.X {
			mean[i] += c.Weight * v
		}
	}
	for i := range mean {
		mean[i] /= total
	}
	for _, c := range cases {
		for i, v := range c.X {
			spread[i] += c.Weight * (v - mean[i]) * (v - mean[i])
		}
	}
	for i := range spread {
		if spread[i] = math.Sqrt(spread[i] / total); !(spread[i] > 1e-9) {
			spread[i] = 1
		}
	}
	return mean, spread, total
}

func standardise(z, x, mean, spread []float64) {
	z[0] = 1
	for i, v := range x {
		z[i+1] = (v - mean[i]) / spread[i]
	}
}

// solve solves a·x = b by Gaussian elimination with pivots. It overwrites a and b.
func solve(a [][]float64, b []float64) ([]float64, bool) {
	n := len(b)
	for i := range n {
		pivot := i
		for j := i + 1; j < n; j++ {
			if math.Abs(a[j][i]) > math.Abs(a[pivot][i]) {
				pivot = j
			}
		}
		if !(math.Abs(a[pivot][i]) > 1e-300) {
			return nil, false
		}
		a[i], a[pivot] = a[pivot], a[i]
		b[i], b[pivot] = b[pivot], b[i]
		for j := i + 1; j < n; j++ {
			f := a[j][i] / a[i][i]
			for k := i; k < n; k++ {
				a[j][k] -= f * a[i][k]
			}
			b[j] -= f * b[i]
		}
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] -= a[i][k] * b[k]
		}
		b[i] /= a[i][i]
	}
	return b, true
}

// AUC returns the probability that a true case has a larger sum than a false one, ties counted
// half; NaN if there is no true or no false case.
func (l *Logistic) AUC(cases []Case) float64 {
	type mass struct{ sum, yes, no float64 }
	all := make([]mass, len(cases))
	var yes, no float64
	for i, c := range cases {
		all[i] = mass{l.Sum(c.X), c.Weight * c.Share, c.Weight * (1 - c.Share)}
		yes += all[i].yes
		no += all[i].no
	}
	slices.SortFunc(all, func(a, b mass) int { return cmp.Compare(a.sum, b.sum) })
	var below, wins float64
	for i := 0; i < len(all); {
		var y, n float64
		for from := all[i].sum; i < len(all) && all[i].sum == from; i++ {
			y, n = y+all[i].yes, n+all[i].no
		}
		wins += y * (below + n/2)
		below += n
	}
	return wins / (yes * no)
}
