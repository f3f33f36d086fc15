package kernel

import (
	"math"
	"math/rand/v2"
)

const (
	// boundMax is the largest number of a bound.
	boundMax = math.MaxUint8
	// unitSlack is far more than the rounding error of float64, in units of a bound.
	unitSlack = 1e-3
	// cosLeast is the smallest cos φ of a bound, and cosLeastTail that of a bound with a tail.
	cosLeast, cosLeastTail = .75, .9

	// scaleSamples is the number of templates that the scales of a coding are measured on.
	scaleSamples = 256
	scaleSeed    = 0x7363616c65
	// A scale reaches this many standard deviations below and above the mean of the samples. The
	// scale cuts an a that is too large and a t that is too small, which loses a little. At the
	// other ends one template in a million has no bound.
	aBelow, aAbove = 9, 3.5
	tBelow, tAbove = 2.5, 9
	// deviationLeast is the smallest standard deviation, as a part of the mean a.
	deviationLeast = 1. / 4096
)

// slopes are the two numbers of a plane's bound before rounding, in units of the plane's sums.
type slopes struct{ a, t float64 }

// bound is what a row stores of slopes: units of the plane's scale.
type bound struct{ a, t uint8 }

// axis has the values that can be stored: from + unit · (0 … boundMax).
type axis struct{ from, unit float64 }

// scale says how the bounds of a plane are stored.
type scale struct{ a, t axis }

// bound rounds a down and t up, which only weakens the bound: limits use no a with a negative C,
// and no t with a negative Z. ok is false if the scale can't store them.
func (s *scale) bound(of slopes) (b bound, ok bool) {
	a := math.Floor((of.a-s.a.from)/s.a.unit - unitSlack)
	t := math.Ceil((of.t-s.t.from)/s.t.unit + unitSlack)
	if !(a >= 0 && t <= boundMax) {
		return b, false
	}
	return bound{uint8(min(a, boundMax)), uint8(max(t, 0))}, true
}

// slopes returns the slopes of a code. code is its length, dot its inner product with the numbers
// it encodes, norm their norm, and tail the norm of the other numbers. ok is false if there is no
// bound.
func (c *coding) slopes(dot, code, norm, tail float64) (s slopes, ok bool) {
	least := cosLeast
	if !c.whole() {
		least = cosLeastTail
	}
	cos := min(dot/(code*norm), 1)
	if !(cos > least) || tail > rowTailMost {
		return s, false
	}
	s.a = code * cos / norm // 1/α
	tan := math.Sqrt(1-float64(cos*cos)) / cos
	s.t = math.Sqrt(float64(tan*tan)+float64(tail*tail)) * s.a // float64 keeps the compiler from fusing product and sum
	return s, true
}

// slopes returns the slopes of the template that was encoded last; ok is false if one is missing.
func (e *encoder) slopes() (s [planes]slopes, ok bool) {
	c := e.coding
	all, both, none := &e.parts[0], &e.parts[1], &e.parts[2]
	tail := math.Sqrt(none.norm.sum())
	if c.whole() {
		tail = 0
	}
	norm := math.Sqrt(all.norm.sum() + both.norm.sum())
	unit := [planes]float64{1, 1}
	switch {
	case c.fine > c.coarse:
		unit[1] = 4
	case c.fine == 0:
		unit[0] = .25
	}
	ok = true
	for p := range planes {
		dot := all.dots[1].sum() + both.dots[p].sum()
		square := all.squares[1].sum() + both.squares[p].sum()
		stated := false
		s[p], stated = c.slopes(dot*unit[p], math.Sqrt(square)*unit[p], norm, tail)
		ok = ok && stated
	}
	return s, ok
}

// measureScales chooses the scales from samples of normal numbers with the spectrum; nil means
// equal weights. Any scale is right for any template. It decides how sharp bounds are, and how many
// rows have one.
func (c *coding) measureScales(s *shape, spectrum []float64) {
	random := rand.New(rand.NewPCG(scaleSeed, uint64(s.dim))) //nolint:gosec // no secret
	e := newEncoder(s, c)
	v := make([]float32, s.dim)
	var a, t [planes]spread
	for range scaleSamples {
		var square float64
		for i := range v {
			x := random.NormFloat64()
			if spectrum != nil {
				x *= math.Sqrt(spectrum[i])
			}
			v[i] = float32(x)
			square += x * x
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(square))
		}
		e.encode(v)
		slopes, ok := e.slopes()
		if !ok {
			continue
		}
		for p, of := range slopes {
			a[p].add(of.a)
			t[p].add(of.t)
		}
	}
	for p := range c.scales {
		least := a[p].mean() * deviationLeast
		c.scales[p] = scale{a[p].axis(least, aBelow, aAbove), t[p].axis(least, tBelow, tAbove)}
	}
}

// spread collects the mean and deviation of some numbers.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(x float64) {
	s.n++
	s.sum += x
	s.squares += x * x
}

func (s *spread) mean() float64 { return s.sum / max(s.n, 1) }

// axis returns an axis from below to above the mean, in standard deviations.
func (s *spread) axis(least, below, above float64) axis {
	mean := s.mean()
	deviation := max(math.Sqrt(max(s.squares/max(s.n, 1)-mean*mean, 0)), least)
	if !(deviation > 0) { // no sample has a bound
		return axis{0, 1}
	}
	from := max(mean-below*deviation, 0)
	return axis{from, (mean + above*deviation - from) / boundMax}
}
