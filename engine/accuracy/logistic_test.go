package accuracy_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"facet/engine/accuracy"
	"facet/internal/must"
)

// drawn returns cases of a known regression: two measurements of different scale, and one without
// any influence.
func drawn(n int) []accuracy.Case {
	r := rand.New(rand.NewPCG(7, 7))
	cases := make([]accuracy.Case, n)
	for i := range cases {
		x := []float64{100 + 20*r.NormFloat64(), r.NormFloat64() / 50, r.NormFloat64()}
		p := 1 / (1 + math.Exp(-(-7.2 + .07*x[0] + 60*x[1])))
		cases[i] = accuracy.Case{X: x, Weight: 1}
		if r.Float64() < p {
			cases[i].Share = 1
		}
	}
	return cases
}

func TestLogisticFindsKnownWeights(t *testing.T) {
	t.Parallel()
	l, err := accuracy.FitLogistic(drawn(40_000))
	must.Do(t, err)
	for i, want := range []float64{.07, 60, 0} {
		if got, most := l.Weights[i], max(.06*want, .04*float64(i/2)); math.Abs(got-want) > most {
			t.Errorf("weight %d is %v, want %v", i, got, want)
		}
	}
	if math.Abs(l.Bias+7.2) > .4 {
		t.Errorf("bias is %v, want -7.2", l.Bias)
	}
}

// A case of share .3 and weight 10 counts like three true and seven false ones.
func TestLogisticCountsSharesAndWeights(t *testing.T) {
	t.Parallel()
	var whole, shared []accuracy.Case
	for i := range 10 {
		x := []float64{float64(i)}
		shared = append(shared, accuracy.Case{X: x, Share: float64(i) / 10, Weight: 10})
		for j := range 10 {
			c := accuracy.Case{X: x, Weight: 1}
			if j < i {
				c.Share = 1
			}
			whole = append(whole, c)
		}
	}
	a, err := accuracy.FitLogistic(whole)
	must.Do(t, err)
	b, err := accuracy.FitLogistic(shared)
	must.Do(t, err)
	if math.Abs(a.Bias-b.Bias) > 1e-6 || math.Abs(a.Weights[0]-b.Weights[0]) > 1e-6 {
		t.Errorf("%+v and %+v differ", a, b)
	}
	if x, y := a.AUC(whole), a.AUC(shared); math.Abs(x-y) > 1e-9 || x < .75 || x > .95 {
		t.Errorf("AUC %v and %v, want the same, about .85", x, y)
	}
}

func TestLogisticOfSeparatedCasesIsFinite(t *testing.T) {
	t.Parallel()
	var cases []accuracy.Case
	for i := range 100 {
		c := accuracy.Case{X: []float64{float64(i), 5}, Weight: 1}
		if i >= 50 {
			c.Share = 1
		}
		cases = append(cases, c)
	}
	l, err := accuracy.FitLogistic(cases)
	must.Do(t, err)
	if w := l.Weights[0]; !(w > 0 && w < 10) || l.Weights[1] != 0 {
		t.Errorf("weights are %v, want one above 0 and one of 0", l.Weights)
	}
	if got := l.AUC(cases); got != 1 {
		t.Errorf("AUC %v, want 1", got)
	}
	// All the same: ties count half.
	if got := (&accuracy.Logistic{Weights: []float64{0, 0}}).AUC(cases); got != .5 {
		t.Errorf("AUC of a constant is %v, want .5", got)
	}
}

func TestLogisticRefusesNoCases(t *testing.T) {
	t.Parallel()
	for _, cases := range [][]accuracy.Case{nil, {{X: []float64{1}}}, {{X: []float64{math.NaN()}, Weight: 1}}} {
		if l, err := accuracy.FitLogistic(cases); !errors.Is(err, accuracy.ErrLogistic) {
			t.Errorf("%+v: %+v, error %v", cases, l, err)
		}
	}
}
