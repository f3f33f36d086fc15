package kernel

import "math"

const (
	probeMax = 127
	// turnMax is the largest angle for which the bound is stated: with the largest
	// angle of a code, acos .75, it is less than π.
	turnMax = .75 * math.Pi
	// roundSlack covers what float32 rounds: in a scan, in score.Dot for DimMax
	// numbers, in the sum of low. Relative to norms of 1.
	roundSlack = 3e-5

	probeNormLeast, probeNormMost = 1e-3, 1e3
)

// probe is a template that is searched with.
type probe struct {
	nums []float32 // padded to vecNums
	// whole is the rotated probe, rounded, padded to units.
	whole  []int8
	norm   float64 // of nums
	length float64 // of whole
	turn   float64 // angle between nums and whole
	// offset is what the codes' offsets add to the sums of the planes.
	offset [planes]float32
	unit   [planes]float64
	bare   bool // no bounds can be stated
}

func newProbe(s *shape, r *rotation, v []float32) *probe {
	p := &probe{
		nums:  make([]float32, s.vecNums),
		whole: make([]int8, s.units*unitDims),
		unit:  alphaUnit(s.dim),
	}
	copy(p.nums, v)
	y := make([]float64, s.dim)
	var norm float64
	for i, x := range v {
		y[i] = float64(x)
		norm += y[i] * y[i]
	}
	p.norm = math.Sqrt(norm)
	if !(p.norm >= probeNormLeast && p.norm <= probeNormMost) {
		p.bare = true
		return p
	}
	r.apply(y)
	var largest float64
	for _, x := range y {
		largest = max(largest, math.Abs(x))
	}
	var sum int
	var dot, square float64
	for i, x := range y {
		n := math.Round(x / largest * probeMax)
		p.whole[i] = int8(n)
		sum += int(n)
		dot += x * n
		square += n * n
	}
	p.length = math.Sqrt(square)
	cos := min(dot/(p.norm*p.length), 1)
	p.turn = math.Sqrt(max(1-cos*cos, 0)) // of which asin is the angle
	p.turn = math.Asin(min(p.turn+1e-7, 1))
	for i, o := range [planes]float64{hiOffset, midOffset, lowOffset} {
		p.offset[i] = float32(o * float64(sum))
	}
	return p
}

// limit is what a plane's sums are compared with: a row with sum s and bound
// (α, tan) is out if α·(s − offset) + tan·z < c.
type limit struct{ c, z float32 }

// limits states the planes' limits for rows of at least the given similarity.
func (p *probe) limits(least float32) [planes]limit {
	none := limit{c: float32(math.Inf(-1))}
	l := [planes]limit{none, none, none}
	if p.bare {
		return l
	}
	cos := float64(least) / p.norm
	if cos > 0 {
		cos /= 1 + normSlack
	} else {
		cos /= 1 - normSlack
	}
	angle := math.Acos(min(max(cos, -1), 1)) + p.turn
	if angle > turnMax {
		return l
	}
	const slack = alphaSlack*4/3 + roundSlack
	sin, cos := math.Sincos(angle)
	for i, u := range p.unit {
		l[i] = limit{
			c: float32((cos - slack) * p.length / u),
			z: float32((sin + slack) * p.length / (u * boundMax)),
		}
	}
	return l
}
