package kernel

import "math"

// A coding says which bits of a template's numbers its planes have. The numbers are rotated and
// taken in lines of sixteen. The pairs of bits of a line weigh 4 steps (coarse) or 1 step (fine).
// The first plane has the coarse pairs of some lines and the fine pairs of some lines, in both
// cases from the first line on:
//
//	in both           4 bits, in steps
//	in coarse only    2 bits, in 4 steps; 2 more, in steps, in the second plane
//	in fine only      2 bits, in steps; 2 more, in quarters of a step, in the second plane
//	in none           no bits: the bound covers what these numbers can add
//
// The plain coding, coarse for all lines, suits templates whose numbers weigh alike. The numbers of
// face models don't: a basis orders them by weight, and the last ones weigh next to nothing.
type coding struct {
	dim          int
	coarse, fine int // numbers of lines
	// parts[0] is the end of the numbers in both pairs, and parts[1] the end of the numbers in any.
	// Each of the three parts has a rotation of its own.
	parts    [2]int
	rotation *rotation
	step     float64 // of a template with norm 1
	planes   [planes]planeShape
	scales   [planes]scale
	grain    float64 // 1/step of the row codes
}

// planeShape is the layout of a plane. The coarse lines start at number 0, the fine lines at the
// number first.
type planeShape struct {
	coarse, fine int
	first        int
	layout       layout
	shift        uint64 // of the sums of the plane before; 32 drops these
}

const (
	planes = 2

	// stepSigma is the step of the plain coding, in standard deviations of a template's numbers.
	// For normal numbers, the angle of the first plane then has a sine of .345, the least that two
	// bits permit. The angle of both planes has a sine of .133. A step of .275 would leave a third
	// fewer rows after both planes, but 6 % more after the first.
	//
	// Templates of wideDim numbers and more use wideSigma. The sines are then .364 for the first
	// plane, and .109 for both, the least that four bits permit. The first plane is sharp enough
	// for usual thresholds. Searches without a threshold depend on both planes.
	stepSigma, wideSigma = .26, .315
	wideDim              = 384
	// rowSigma is how many standard deviations of a number the row codes reach.
	rowSigma = 5.04
)

func newPlaneShape(coarse, fine, first int, shift uint64) planeShape {
	bounds := (coarse + fine) * blockLineBytes
	return planeShape{coarse, fine, first, layout{bounds, bounds + blockSlots*boundBytes}, shift}
}

// plainCoding returns the coding for templates without a known spectrum.
func plainCoding(s *shape) *coding {
	sigma := 1 / math.Sqrt(float64(s.dim))
	return newCoding(s, s.lines, 0, plainStep(s.dim)*sigma, sigma, nil)
}

func plainStep(dim int) float64 {
	if dim >= wideDim {
		return wideSigma
	}
	return stepSigma
}

// newCoding returns a coding with the given lines and step, for templates whose numbers have
// standard deviations up to sigma and the given spectrum; a nil spectrum is unknown.
func newCoding(s *shape, coarse, fine int, step, sigma float64, spectrum []float64) *coding {
	ends := [2]int{min(min(coarse, fine)*planeDims, s.dim), min(max(coarse, fine)*planeDims, s.dim)}
	c := &coding{
		dim: s.dim, coarse: coarse, fine: fine, parts: ends,
		rotation: newRotation(s.dim, ends),
		step:     step,
		grain:    rowMax / (rowSigma * sigma),
	}
	shift := uint64(0)
	if fine > coarse || fine == 0 { // the second plane counts quarters of a step, or the first one four
		shift = 2
	}
	c.planes[0] = newPlaneShape(coarse, fine, 0, 32)
	c.planes[1] = newPlaneShape(0, max(coarse, fine)-min(coarse, fine), min(coarse, fine)*planeDims, shift)
	c.measureScales(s, spectrum)
	return c
}

// whole reports whether the planes have all numbers.
func (c *coding) whole() bool { return c.parts[1] == c.dim }

const (
	// suitDim is the smallest dimension whose coding is suited to a spectrum.
	suitDim = 64
	// suitCosine is the threshold that a suited coding is optimised for, the usual one of a pack.
	suitCosine = .48
	// byteCost and rowCost estimate, in nanoseconds, the time for a byte of the first plane and for
	// a row that it leaves. Only their ratio counts.
	byteCost, rowCost = .055, 26
	// suitGain is the share of the plain coding's cost that a suited one must stay below.
	suitGain = .88
)

// suitedCoding returns the best coding for templates with the spectrum: the share of the squared
// norm that each of their numbers has.
func suitedCoding(s *shape, spectrum []float64) *coding {
	sigma := math.Sqrt(1 / float64(s.dim))
	spread := 0.
	shares := make([]float64, s.lines)
	for i, e := range spectrum {
		spread += e * e
		shares[i/planeDims] += e
	}
	best := suitGain * cost(spread, distortion(s.dim, sigma, 4, 4*plainStep(s.dim)*sigma), 0, s.lines)
	var lines [2]int
	var suited prediction
	for coarse := range s.lines + 1 {
		for fine := range s.lines + 1 {
			if coarse+fine == 0 || coarse+fine > s.lines*3/2 || max(coarse, fine)*2 < s.lines {
				continue
			}
			for k := .18; k < .6; k *= 1.15 {
				at := newPrediction(s, shares, coarse, fine, k)
				if c := cost(spread, at.lost, at.tail, coarse+fine); c < best && at.tail < tailShareMax {
					best, lines, suited = c, [2]int{coarse, fine}, at
				}
			}
		}
	}
	if suited.step == 0 {
		return plainCoding(s)
	}
	return newCoding(s, lines[0], lines[1], suited.step, suited.sigma, spectrum)
}

// tailShareMax is the largest share of the squared norm that a coding may leave out.
const tailShareMax = .02

// prediction is what a coding would lose on normal numbers.
type prediction struct {
	step, sigma float64
	lost        float64 // share of the squared norm that the first plane loses
	tail        float64 // share of the squared norm in numbers without bits
}

// newPrediction predicts the losses with a step of k standard deviations of the first part.
func newPrediction(s *shape, shares []float64, coarse, fine int, k float64) (p prediction) {
	both, any := min(coarse, fine), max(coarse, fine)
	part := func(from, to int) (n int, sigma float64) {
		share := 0.
		for _, e := range shares[from:to] {
			share += e
		}
		n = min(to*planeDims, s.dim) - from*planeDims
		return n, math.Sqrt(share / float64(max(n, 1)))
	}
	n0, sigma0 := part(0, both)
	n1, sigma1 := part(both, any)
	n2, sigma2 := part(any, s.lines)
	p.sigma = max(sigma0, sigma1)
	p.tail = float64(max(n2, 0)) * sigma2 * sigma2
	if p.step = k * sigma0; both == 0 {
		p.step = k * sigma1
	}
	cell := p.step
	if coarse > fine {
		cell = 4 * p.step
	}
	p.lost = distortion(n0, sigma0, 16, p.step) + distortion(n1, sigma1, 4, cell)
	return p
}

// cost estimates the time of a row in a search, in nanoseconds.
func cost(spread, lost, tail float64, lines int) float64 {
	tan := math.Sqrt(lost / (1 - lost))
	slack := math.Sqrt((tan*tan + tail) * (1 - suitCosine*suitCosine + tail))
	left := math.Erfc((suitCosine-slack)/math.Sqrt(2*spread)) / 2
	return float64(4*lines+boundBytes)*byteCost + left*rowCost
}

// distortion returns the squared error of n normal numbers that are rounded to the given number of
// levels.
func distortion(n int, sigma float64, levels int, step float64) float64 {
	if n <= 0 || !(sigma > 0) {
		return 0
	}
	// moments returns the integrals of 1, x and x² times the density, from a on.
	moments := func(a float64) [3]float64 {
		density := math.Exp(-a*a/2) / math.Sqrt(2*math.Pi)
		q := math.Erfc(a/math.Sqrt2) / 2
		return [3]float64{q, density, a*density + q}
	}
	s, sum := step/sigma, 0.
	for i := range levels / 2 {
		low, high := moments(float64(i)*s), [3]float64{}
		if i < levels/2-1 {
			high = moments(float64(i+1) * s)
		}
		at := (float64(i) + .5) * s
		sum += low[2] - high[2] - 2*at*(low[1]-high[1]) + at*at*(low[0]-high[0])
	}
	return float64(n) * sigma * sigma * 2 * sum
}
