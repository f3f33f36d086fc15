package kernel

import (
	"math"
	"math/rand/v2"
)

const (
	// boundMax is the largest number of a bound.
	boundMax = math.MaxUint8
	// unitSlack is what float64 may have rounded of a number of a bound, in units: far more
	// than it does.
	unitSlack = 1e-3
	// cosLeast is the least cos φ of a bound, and cosLeastTail of one with a tail.
	cosLeast, cosLeastTail = .75, .9

	// scaleSamples are the templates of which the scales of a coding are measured.
	scaleSamples = 256
	scaleSeed    = 0x7363616c65
	// A scale begins and ends so many standard deviations from the mean of the samples: what
	// is too large for a, or too small for t, is cut, which loses a little; the other ends leave
	// one template in a million out.
	aBelow, aAbove = 9, 3.5
	tBelow, tAbove = 2.5, 9
	// deviationLeast is the least standard deviation, of the mean a.
	deviationLeast = 1. / 4096
)

// slopes are the numbers of a plane's bound as they are, in units of the plane's sums.
type slopes struct{ a, t float64 }

// bound is what a row stores of them: how many units of the plane's scale.
type bound struct{ a, t uint8 }

// axis says which numbers are stored: from + unit · (0 … boundMax).
type axis struct{ from, unit float64 }

// scale says how the bounds of a plane are stored.
type scale struct{ a, t axis }

// bound rounds a down and t up, so that the bound only gets weaker, as no a is used with
// a C below 0, nor a t with such a Z. It tells if that can be done.
func (s *scale) bound(of slopes) (b bound, ok bool) {
	a := math.Floor((of.a-s.a.from)/s.a.unit - unitSlack)
	t := math.Ceil((of.t-s.t.from)/s.t.unit + unitSlack)
	if !(a >= 0 && t <= boundMax) {
		return b, false
	}
	return bound{uint8(min(a, boundMax)), uint8(max(t, 0))}, true
}

// slopes states the bound of numbers of the given norm whose code, of length code, has
// the inner product dot with them, and of the others, of norm tail.
func (c *coding) slopes(dot, code, norm, tail float64) (s slopes, ok bool) {
	least := cosLeast
	if !c.whole() {
		least = cosLeastTail
	}
	return slopesFrom(least, dot, code, norm, tail)
}

// slopesFrom states it if the cosine is more than the least.
func slopesFrom(least, dot, code, norm, tail float64) (s slopes, ok bool) {
	cos := min(dot/(code*norm), 1)
	if !(cos > least) || tail > rowTailMost {
		return s, false
	}
	s.a = code * cos / norm // 1/α
	tan := math.Sqrt(1-float64(cos*cos)) / cos
	s.t = math.Sqrt(float64(tan*tan)+float64(tail*tail)) * s.a // a product and a sum can't be fused
	return s, true
}

// slopes are those of a template that was coded, if all can be stated.
func (e *encoder) slopes() (s [planes]slopes, ok bool) {
	c := e.coding
	if c.signed() {
		return e.signSlopes()
	}
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

// measureScales chooses the scales for templates of the spectrum, or, if there is none, whose
// numbers weigh alike: templates of normal numbers tell how the slopes are spread. Any scale is
// right for any template: it decides how sharp bounds are, and how many can be stored.
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

// spread is how some numbers are spread.
type spread struct{ n, sum, squares float64 }

func (s *spread) add(x float64) {
	s.n++
	s.sum += x
	s.squares += x * x
}

func (s *spread) mean() float64 { return s.sum / max(s.n, 1) }

// axis reaches from below to above the mean, in standard deviations.
func (s *spread) axis(least, below, above float64) axis {
	mean := s.mean()
	deviation := max(math.Sqrt(max(s.squares/max(s.n, 1)-mean*mean, 0)), least)
	if !(deviation > 0) { // no sample has a bound
		return axis{0, 1}
	}
	from := max(mean-below*deviation, 0)
	return axis{from, (mean + above*deviation - from) / boundMax}
}
