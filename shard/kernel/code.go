package kernel

import "math"

// A number y of a rotated template, in units of the template's own step, is coded
// as 4·hi + mid = ⌊y⌋ + 8, clipped to 0 … 15, and low says where in the cell
// (and how far beyond the outer ones) it lies. The reconstructions are
//
//	plane hi    4·(hi − 1.5)
//	plane mid   4·hi + mid − 7.5
//	plane low   (4·(4·hi + mid − 7.5) + low − 7.5) / 4
//
// Only their directions count.
const (
	planes = 3

	hiOffset  = 1.5
	midOffset = 7.5
	lowOffset = 37.5 // 4·7.5 + 7.5
	hiWeight  = 16
	midWeight = 4
	midShift  = 2 // times midWeight

	// stepSigma is a step in standard deviations of a template's numbers: a
	// compromise of the planes' angles (sines .348, .121 and .042 for normal numbers;
	// the best step of the first alone gives .342, of the second .107).
	stepSigma = .275

	boundMax = math.MaxUint16
	// normSlack is how far a template's norm may be from 1; rows beyond it are
	// always compared exactly.
	normSlack = 1.0 / (1 << 13)
	// alphaSlack is how far a stored α may be from the true one, relatively.
	alphaSlack = 1.0 / (1 << 12)
)

// alphaUnit gives the unit of the stored α for each plane.
func alphaUnit(dim int) [planes]float64 {
	u := 1 / (math.Sqrt(float64(dim)) * boundMax)
	return [planes]float64{4 * u, u, u / 4}
}

// bound is what a row stores for a plane.
type bound struct{ alpha, tan uint16 }

// encoder turns templates into codes; not for concurrent use.
type encoder struct {
	rotation *rotation
	units    [planes]float64
	y        []float64
	// codes are 4·hi+mid, lows are low, one a number.
	codes, lows []uint8
}

func newEncoder(r *rotation) *encoder {
	return &encoder{
		rotation: r,
		units:    alphaUnit(r.dim),
		y:        make([]float64, r.dim),
		codes:    make([]uint8, r.dim),
		lows:     make([]uint8, r.dim),
	}
}

// encode fills codes and lows. It tells the bounds of the planes; ok is false if
// they can't be stated, so that the row has to be compared exactly in every search.
func (e *encoder) encode(v []float32) (b [planes]bound, ok bool) {
	var norm float64
	for i, x := range v {
		e.y[i] = float64(x)
		norm += float64(x) * float64(x)
	}
	norm = math.Sqrt(norm)
	if !(math.Abs(norm-1) <= normSlack) {
		clear(e.codes)
		clear(e.lows)
		return b, false
	}
	e.rotation.apply(e.y)
	scale := math.Sqrt(float64(len(v))) / (stepSigma * norm)
	var dot, square [planes]float64
	for i, y := range e.y {
		y *= scale
		cell := min(max(math.Floor(y), -8), 7)
		low := min(max(math.Floor((y-cell-.5)*midWeight+8), 0), 15)
		code := int(cell) + 8
		e.codes[i], e.lows[i] = uint8(code), uint8(low)
		for p, c := range [planes]float64{
			float64(code>>2) - hiOffset,
			float64(code) - midOffset,
			midWeight*float64(code) + low - lowOffset,
		} {
			dot[p] += y * c
			square[p] += c * c
		}
	}
	length := math.Sqrt(float64(len(v))) / stepSigma
	ok = true
	for p := range planes {
		var fine bool
		b[p], fine = makeBound(dot[p], math.Sqrt(square[p]), length, e.units[p])
		ok = ok && fine
	}
	return b, ok
}

// makeBound states the bound of a row of the given length whose code, of length
// code, has the inner product dot with it.
func makeBound(dot, code, length, unit float64) (b bound, ok bool) {
	cos := min(dot/(code*length), 1)
	if !(cos > .75) {
		return b, false
	}
	alpha := 1 / (code * cos)
	tan := math.Sqrt(1-cos*cos) / cos
	a, t := math.Round(alpha/unit), math.Ceil(tan*boundMax+1)
	if !(a <= boundMax && t <= boundMax && math.Abs(a*unit-alpha) <= alphaSlack*alpha) {
		return b, false
	}
	return bound{uint16(a), uint16(t)}, true
}
