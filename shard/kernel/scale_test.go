package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestStoredBoundIsNeverSharper(t *testing.T) {
	t.Parallel()
	const dim, n = 128, 20_000
	s := newShape(dim)
	r := rand.New(rand.NewPCG(1, 24))
	steep := suitedCoding(&s, spectrumOf(dim, func() []float32 { return tapered(r, dim, .5) }))
	for name, c := range map[string]struct {
		coding *coding
		power  float64
	}{"plain": {plainCoding(&s), 0}, "suited": {steep, .5}} {
		e := newEncoder(&s, c.coding)
		r := rand.New(rand.NewPCG(2, 24))
		var lost [planes]slopes
		for range n {
			v := unit(r, dim)
			if c.power > 0 {
				v = tapered(r, dim, c.power)
			}
			e.encode(v)
			slopes, ok := e.slopes()
			if !e.bounded || !ok {
				t.Fatalf("%s: a template has no bound: %v", name, v)
			}
			for p, of := range slopes {
				scale, b := c.coding.scales[p], e.bounds[p]
				a, z := scale.a.from+scale.a.unit*float64(b.a), scale.t.from+scale.t.unit*float64(b.t)
				if a > of.a || z < of.t {
					t.Fatalf("%s, plane %d: stored as %v and %v, is %+v", name, p, a, z, of)
				}
				lost[p].a += (of.a - a) / of.a / n
				lost[p].t += (z - of.t) / of.a / n
			}
		}
		for p, l := range lost {
			if l.a+l.t > 1./600 {
				t.Errorf("%s: plane %d loses %.5f and %.5f of a, on the average", name, p, l.a, l.t)
			}
		}
	}
}

func TestScaleRoundsDownOrRefuses(t *testing.T) {
	t.Parallel()
	s := scale{a: axis{2, .5}, t: axis{1, .25}}
	f := func(of slopes, want bound, wantOK bool) {
		t.Helper()
		if got, ok := s.bound(of); got != want || ok != wantOK {
			t.Errorf("%+v: got %v, %v, want %v, %v", of, got, ok, want, wantOK)
		}
	}
	f(slopes{3.2, 1.3}, bound{2, 2}, true)
	f(slopes{2.1, .1}, bound{0, 0}, true)
	f(slopes{1.9, 1.3}, bound{}, false)
	f(slopes{1e9, 1.3}, bound{boundMax, 2}, true)
	f(slopes{3.2, 1.001 + boundMax*.25}, bound{}, false)
	f(slopes{math.NaN(), 1}, bound{}, false)
	f(slopes{3.2, math.NaN()}, bound{}, false)
	f(slopes{math.Inf(1), math.Inf(1)}, bound{}, false)
}
