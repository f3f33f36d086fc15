package imaging_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"facet/engine/imaging"
	"facet/internal/must"
)

func near(t *testing.T, what string, got, want imaging.Point) {
	t.Helper()
	if math.Hypot(got.X-want.X, got.Y-want.Y) > 1e-6 {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestFitFindsAppliedSimilarity(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		m := imaging.Crop(10, 10, imaging.Point{X: 100 * r.Float64(), Y: 100 * r.Float64()}, .1+5*r.Float64(), 6*r.Float64())
		from, to := make([]imaging.Point, 5), make([]imaging.Point, 5)
		for i := range from {
			from[i] = imaging.Point{X: 100 * r.Float64(), Y: 100 * r.Float64()}
			to[i] = m.Apply(from[i])
		}
		got, err := imaging.Fit(from, to)
		must.Do(t, err)
		p := imaging.Point{X: 3, Y: 77}
		near(t, "fitted", got.Apply(p), m.Apply(p))
	}
}

func TestFitHasLeastSquares(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	from, to := make([]imaging.Point, 5), make([]imaging.Point, 5)
	for i := range from {
		from[i] = imaging.Point{X: r.NormFloat64(), Y: r.NormFloat64()}
		to[i] = imaging.Point{X: r.NormFloat64(), Y: r.NormFloat64()}
	}
	best, err := imaging.Fit(from, to)
	must.Do(t, err)
	cost := func(m imaging.Affine) (sum float64) {
		for i := range from {
			p := m.Apply(from[i])
			sum += (p.X-to[i].X)*(p.X-to[i].X) + (p.Y-to[i].Y)*(p.Y-to[i].Y)
		}
		return sum
	}
	for range 1000 {
		m := best
		a, b := .1*r.NormFloat64(), .1*r.NormFloat64()
		m.A, m.E = m.A+a, m.E+a
		m.B, m.D = m.B-b, m.D+b
		m.C, m.F = m.C+.1*r.NormFloat64(), m.F+.1*r.NormFloat64()
		if cost(m) < cost(best) {
			t.Fatalf("%+v costs %v, the fit %+v %v", m, cost(m), best, cost(best))
		}
	}
}

func TestFitRefusesEqualPoints(t *testing.T) {
	t.Parallel()
	p := []imaging.Point{{X: 1, Y: 1}, {X: 1, Y: 1}}
	q := []imaging.Point{{X: 0, Y: 1}, {X: 1, Y: 1}}
	if _, err := imaging.Fit(p, q); err == nil {
		t.Error("fitted points on one spot")
	}
	if _, err := imaging.Fit(q, q[:1]); err == nil {
		t.Error("fitted lists of two lengths")
	}
	nan := []imaging.Point{{X: math.NaN()}, {X: 1}}
	if _, err := imaging.Fit(nan, q); err == nil {
		t.Error("fitted a point that is no number")
	}
}

// plane is an image whose red rises by 1 a pixel to the right, green downwards.
func plane(w, h int) *imaging.Image {
	im := imaging.NewImage(w, h)
	for y := range h {
		for x := range w {
			im.Pix[3*(y*w+x)] = uint8(x)
			im.Pix[3*(y*w+x)+1] = uint8(y)
			im.Pix[3*(y*w+x)+2] = 77
		}
	}
	return im
}

func TestSampleFollowsMap(t *testing.T) {
	t.Parallel()
	var p imaging.Pyramid
	p.Reset(plane(200, 200))
	for _, scale := range []float64{.25, .5, 1, 1.5, 1.99, 2, 3, 4.5, 9} {
		for _, angle := range []float64{0, .3, -1.2, math.Pi} {
			m := imaging.Crop(16, 16, imaging.Point{X: 101.3, Y: 98.6}, scale, angle)
			dst := imaging.NewImage(16, 16)
			p.Sample(dst, m, imaging.Replicate)
			for y := range 16 {
				for x := range 16 {
					// A pixel's value is that at its centre, half a pixel in.
					at := m.Apply(imaging.Point{X: float64(x) + .5, Y: float64(y) + .5})
					px := dst.Pix[3*(16*y+x):][:3]
					// Rounding of each halving (½ up) and of the sampling itself.
					if math.Abs(float64(px[0])-(at.X-.5)) > 1.6 || math.Abs(float64(px[1])-(at.Y-.5)) > 1.6 || px[2] != 77 {
						t.Fatalf("scale %v, angle %v: (%d, %d) is %v, want %.2f, %.2f", scale, angle, x, y, px, at.X-.5, at.Y-.5)
					}
				}
			}
		}
	}
}

func TestSampleAtFullSizeCopies(t *testing.T) {
	t.Parallel()
	im := plane(40, 30)
	var p imaging.Pyramid
	p.Reset(im)
	dst := imaging.NewImage(40, 30)
	p.Sample(dst, imaging.Crop(40, 30, imaging.Point{X: 20, Y: 15}, 1, 0), imaging.Replicate)
	for i := range im.Pix {
		if im.Pix[i] != dst.Pix[i] {
			t.Fatalf("byte %d: got %d, want %d", i, dst.Pix[i], im.Pix[i])
		}
	}
}

func TestSampleBeyondEdgeIsFilled(t *testing.T) {
	t.Parallel()
	var p imaging.Pyramid
	p.Reset(plane(40, 30))
	dst := imaging.NewImage(4, 4)
	far := imaging.Crop(4, 4, imaging.Point{X: -500, Y: 1e12}, 1, 0)
	p.Sample(dst, far, imaging.Grey)
	if px := [3]uint8(dst.Pix[:3]); px != [3]uint8{127, 127, 127} {
		t.Errorf("grey: got %v", px)
	}
	p.Sample(dst, far, imaging.Replicate)
	if px := [3]uint8(dst.Pix[:3]); px != [3]uint8{0, 29, 77} {
		t.Errorf("replicated: got %v, want the lower left corner", px)
	}
	p.Sample(dst, imaging.Affine{A: math.NaN(), E: math.Inf(1), C: math.NaN()}, imaging.Grey) // no panic
}

func TestShrunkSampleSkipsNoPixel(t *testing.T) {
	t.Parallel()
	// A fine checkerboard is grey from afar; without averaging it would be black
	// or white.
	im := imaging.NewImage(257, 255)
	for i := range im.Width * im.Height {
		if (i%im.Width+i/im.Width)%2 == 0 {
			copy(im.Pix[3*i:], []uint8{255, 255, 255})
		}
	}
	var p imaging.Pyramid
	p.Reset(im)
	dst := imaging.NewImage(10, 10)
	for _, scale := range []float64{2, 3.7, 8, 20} {
		p.Sample(dst, imaging.Crop(10, 10, imaging.Point{X: 128, Y: 127}, scale, 0), imaging.Replicate)
		for i, v := range dst.Pix {
			if v < 125 || v > 131 {
				t.Fatalf("scale %v: byte %d is %d, want about 128", scale, i, v)
			}
		}
	}
}

func FuzzSampleStaysInImage(f *testing.F) {
	f.Add(3, 5, 1.0, 0.0, 10.0, 0.0, 1.0, 10.0, 0)
	f.Add(16, 1, 1e-9, 1e9, -1e300, 2.0, 7.0, 3.0, 1)
	f.Fuzz(func(_ *testing.T, w, h int, a, b, c, d, e, g float64, edge int) {
		var p imaging.Pyramid
		p.Reset(plane(1+(w&63), 1+(h&63)))
		dst := imaging.NewImage(9, 7)
		p.Sample(dst, imaging.Affine{A: a, B: b, C: c, D: d, E: e, F: g}, imaging.Edge(edge&1))
	})
}
