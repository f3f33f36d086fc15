package accuracy

import (
	"errors"
	"math"
	"testing"

	"facet/internal/must"
)

// drawnCosines has n cosines at even steps of the probability; above .3, which a share of
// 1e-2 exceeds, they have a generalised Pareto distribution.
func drawnCosines(n int, shape, scale float64) *Cosines {
	c := new(Cosines)
	for i := range n {
		above := (float64(i) + .5) / float64(n)
		if above >= 1e-2 {
			c.Add(.29*(1-above), 1)
			continue
		}
		c.Add(Tail{.3, shape, scale}.at(1e-2/above), 1)
	}
	return c
}

// at is the cosine that is exceeded so many times more rarely than Cosine.
func (t Tail) at(times float64) float64 { return t.CosineAt(TailShare / times) }

func TestKnownTailsAreRecovered(t *testing.T) {
	t.Parallel()
	f := func(shape, scale float64) {
		t.Helper()
		truth := Tail{.3, shape, scale}
		got, tail, err := drawnCosines(1_000_000, shape, scale).CosinesAt([]float64{1e-3, 1e-4, 1e-5, 1e-6})
		must.Do(t, err)
		near(t, "shape", tail.Shape, shape, .03)
		for i, times := range []float64{10, 100, 1000, 10_000} {
			near(t, "cosine", got[i], truth.at(times), .002)
		}
	}
	f(0, .033) // exponential
	f(-.2, .05)
	f(.1, .02)
}

func TestFittedMapNeverFalls(t *testing.T) {
	t.Parallel()
	for _, shape := range []float64{-.4, -.1, 0, 1e-12, .2} {
		tail := Tail{.33, shape, .03}
		last := tail.CosineAt(TailShare)
		near(t, "cosine where the tail begins", last, .33, 1e-12)
		for fmr := TailShare / 2; fmr > 1e-9; fmr /= 2 {
			at := tail.CosineAt(fmr)
			if !(at > last) {
				t.Fatalf("shape %v: cosine %v at %v, %v before", shape, at, fmr, last)
			}
			last = at
		}
	}
}

func TestPersonPairsWeighTheSame(t *testing.T) {
	t.Parallel()
	// Person 0 has three photographs, person 1 two, person 2 one; one has no face.
	samples := []Sample{
		{Person: 0, Acquired: true},
		{Person: 0, Acquired: true},
		{Person: 0, Acquired: true},
		{Person: 1, Acquired: true},
		{Person: 1, Acquired: true},
		{Person: 2, Acquired: true},
		{Person: 2},
	}
	cosines := NonMatedCosines(samples, func(a, b int) float64 {
		return float64(samples[a].Person+samples[b].Person) / 10 // .1, .2 or .3
	})
	if cosines.Pairs != 6+3+2 {
		t.Errorf("%d pairs, want 11", cosines.Pairs)
	}
	near(t, "weight of all", cosines.total, 3, 1e-12)
	near(t, "cosine above which a sixth lies", cosines.upper(1./6), .3, 2./cosineBins)
	near(t, "cosine above which a half lies", cosines.upper(.5), .2, 2./cosineBins)
	near(t, "cosine above which five sixths lie", cosines.upper(5./6), .1, 2./cosineBins)
}

func TestTooFewCosinesAreNotFitted(t *testing.T) {
	t.Parallel()
	c := new(Cosines)
	if _, err := c.Tail(); !errors.Is(err, ErrTail) {
		t.Errorf("no comparisons: %v, want ErrTail", err)
	}
	for i := range 5000 { // of which five are the tail
		c.Add(float64(i)/10_000, 1)
	}
	if _, err := c.Tail(); !errors.Is(err, ErrTail) {
		t.Errorf("a tail of five: %v, want ErrTail", err)
	}
	c.Add(math.Inf(1), 1) // no cosine may leave the histogram
	c.Add(-2, 1)
}
