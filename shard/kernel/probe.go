package kernel

import "math"

const (
	probeMax = 127
	// turnMax is the largest angle for which the bound is stated: with the largest
	// angle of a code, acos .75, it is less than π.
	turnMax = .75 * math.Pi
	// What a probe and a row have in numbers without bits may have these shares of their
	// norm, so that with angles of codes up to acos .9 no sum of angles reaches π.
	tailMost, rowTailMost = .6, .7
	// turnMost is the same for the angle by which a probe is turned.
	turnMost = .2
	// roundSlack covers what float32 rounds: in a scan, in score.Dot for DimMax
	// numbers. Relative to norms of 1.
	roundSlack = 3e-5

	probeNormLeast, probeNormMost = 1e-3, 1e3

	// limitMax is the largest c or z of a limit, and limitBaseMax about the largest base: with
	// both products it fits 32 bits.
	limitMax, limitBaseMax = math.MaxInt16, 1 << 30
	limitShiftMax          = 30
)

// probe is a template that is searched with.
type probe struct {
	nums []float32 // padded to vecNums
	norm float64
	bare bool // no bounds can be stated
}

func newProbe(s *shape, v []float32) *probe {
	p := &probe{nums: make([]float32, s.vecNums)}
	copy(p.nums, v)
	var square float64
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	p.norm = math.Sqrt(square)
	p.bare = !(p.norm >= probeNormLeast && p.norm <= probeNormMost)
	return p
}

// turned is a probe for the rows of one coding.
type turned struct {
	coding *coding
	probe  *probe
	// whole is the rotated probe, rounded, padded to rowBytes.
	whole []int8
	// planes is what the planes see of it, rows what the rows see: all.
	planes, rows rounded
	tables       []uint8       // of signs
	tail         float64       // norm of what the planes don't see, of a probe of norm 1
	offset       [planes]int32 // what the codes' offsets add to the sums of the planes
	rowOffset    int32         // of the rows
	sum          int32         // of whole

	least  float32 // of which limits are
	limits [planes]limit
	looks  [planes]limit // rows that they put out look out: the angles of codes are left out
	row    int32         // rows with a smaller sum are out
	half   int32         // rows with a smaller sum of their upper half are out
	even   int32         // rows with a smaller sum look out
}

// rounded are numbers of a probe of norm 1 and what became of them.
type rounded struct {
	norm   float64
	length float64 // when rounded
	turn   float64 // angle between both
}

func round(y []float64, whole []int8) (r rounded) {
	var dot, square, norm float64
	for i, x := range y {
		n := float64(whole[i])
		norm += x * x
		dot += x * n
		square += n * n
	}
	r.norm, r.length = math.Sqrt(norm), math.Sqrt(square)
	if r.length == 0 {
		return r
	}
	cos := min(dot/(r.norm*r.length), 1)
	r.turn = math.Asin(min(math.Sqrt(max(1-cos*cos, 0))+1e-7, 1))
	return r
}

// turn rotates and rounds a probe.
func (p *probe) turn(s *shape, c *coding) *turned {
	t := &turned{coding: c, probe: p, whole: make([]int8, s.rowBytes), least: float32(math.NaN())}
	if p.bare {
		return t
	}
	y := make([]float64, s.dim)
	for i, x := range p.nums[:s.dim] {
		y[i] = float64(x) / p.norm
	}
	c.rotation.apply(activeCoder, y)
	var largest float64
	for _, x := range y {
		largest = max(largest, math.Abs(x))
	}
	if c.signed() {
		largest = max(largest, signLargest(y))
	}
	for i, x := range y {
		t.whole[i] = int8(math.Round(x / largest * probeMax))
		t.sum += int32(t.whole[i])
	}
	t.rowOffset = rowZero * t.sum
	coded := c.parts[1]
	t.planes, t.rows = round(y[:coded], t.whole), round(y, t.whole)
	t.tail = math.Sqrt(max(1-t.planes.norm*t.planes.norm, 0))
	if c.whole() {
		t.tail = 0
	}
	var sums [2]int32 // of the numbers in both, and of those in one
	for i, n := range t.whole[:coded] {
		if i < c.parts[0] {
			sums[0] += int32(n)
		} else {
			sums[1] += int32(n)
		}
	}
	switch {
	case c.signed():
		t.tables = signTablesOf(t.whole, c.planes[0].signs)
		t.offset = [planes]int32{signOffset(t.whole), half(3 * sums[1])}
	case c.fine > c.coarse:
		t.offset = [planes]int32{half(15*sums[0] + 3*sums[1]), half(60*sums[0] + 15*sums[1])}
	case c.fine == 0:
		t.offset = [planes]int32{half(3 * sums[1]), half(15 * sums[1])}
	default:
		t.offset = [planes]int32{half(15*sums[0] + 12*sums[1]), half(15*sums[0] + 15*sums[1])}
	}
	return t
}

// half returns half of a number, rounded down: rows of a smaller sum than an offset rounded
// down have a smaller one than the offset.
func half(n int32) int32 { return n >> 1 }

// limit is what a plane's sums are compared with: a row with sum s and bound (a, t) is out
// if s < (base + a·c − t·z) / 2ˢʰⁱᶠᵗ, rounded down. The products fit 23 bits, base 30. c and z
// are not below 0.
type limit struct {
	c, z  int16
	base  int32
	shift uint64
	none  bool // nothing is out
}

// state states the limits for rows of at least the given similarity.
func (t *turned) state(least float32) {
	if t.least == least {
		return
	}
	t.least = least
	none := limit{none: true}
	t.limits, t.looks = [planes]limit{none, none}, [planes]limit{none, none}
	t.row, t.half, t.even = math.MinInt32, math.MinInt32, math.MinInt32
	if t.probe.bare {
		return
	}
	cos := float64(least) / t.probe.norm
	if cos > 0 {
		cos /= 1 + normSlack
	} else {
		cos /= 1 - normSlack
	}
	t.row, t.even = t.rowLimits(cos)
	t.half = t.halfLimit()
	t.planeLimits(cos)
}

// rowLimits: with a probe q of norm 1 that was rounded to q' by the angle ψ, and a row x
// whose code is c + ρ in steps 1/grain, q·x ≤ (cos ψ/|q'| · q'·c + sin ψ · |c| + |ρ|)/grain.
// As a rule, ρ and the angle matter little: even leaves them out.
func (t *turned) rowLimits(cos float64) (row, even int32) {
	off := rowError(t.coding.dim) / t.coding.grain
	sinTurn, cosTurn := math.Sincos(t.rows.turn)
	if !(cosTurn > .5) {
		return math.MinInt32, math.MinInt32
	}
	need := cos - off - sinTurn*(1+off) - roundSlack
	sum := func(need float64) int32 {
		sum := math.Floor(need*t.coding.grain*t.rows.length/cosTurn) - 1 + float64(t.rowOffset)
		return int32(min(max(sum, math.MinInt32), math.MaxInt32))
	}
	return sum(need), sum(cos)
}

// halfLimit: a sum is 16 times that of the upper halves and that of the lower ones, which is
// at most lowZero times the probe's numbers, and their norm times what lowError states.
func (t *turned) halfLimit() int32 {
	if t.row == math.MinInt32 {
		return math.MinInt32
	}
	lower := lowZero*float64(t.sum) + t.rows.length*math.Sqrt(lowError(t.coding.dim))
	return int32(max(math.Floor((float64(t.row)-lower)/16)-1, math.MinInt32))
}

// planeLimits states the limits of the planes; doc.go derives them. What is rounded is covered
// where it is rounded: float32, in scans and in score.Dot, by a smaller cos τ, from which C and Z
// follow; a and t by their direction, as C and Z are not negative; the same with limits.
func (t *turned) planeLimits(cos float64) {
	turn := t.planes.turn
	cos -= roundSlack
	if t.coding.whole() {
		if math.Acos(min(max(cos, -1), 1))+turn > turnMax {
			return
		}
	} else if cos < 0 || t.tail > tailMost || turn > turnMost {
		return
	}
	if t.planes.length == 0 || t.coding.signed() && turn > turnMost {
		return
	}
	cos = min(max(cos, -1), 1)
	sin := math.Sqrt(1 - cos*cos)
	sinTurn, cosTurn := math.Sincos(turn)
	norm := t.planes.norm
	if t.coding.whole() {
		norm = 1
	}
	side, kappa := max(cos, 0), t.coding.kappa
	if kappa < 1 {
		side = math.Sqrt(1 - kappa*kappa*sin*sin)
	}
	c := cos/norm*cosTurn - sin*sinTurn
	z := sin*kappa*cosTurn + side/norm*sinTurn
	z = math.Hypot(z, t.tail/norm+roundSlack)
	if !(c >= 0) { // then a must not be rounded down
		return
	}
	var limits, looks [planes]limit
	for i := range limits {
		limits[i], looks[i] = t.newLimit(i, c, z), t.newLimit(i, c, 0)
		if limits[i].none || looks[i].none {
			return
		}
	}
	t.limits, t.looks = limits, looks
}

// newLimit scales C and Z to the numbers that a plane's bounds are multiplied by.
func (t *turned) newLimit(plane int, c, z float64) limit {
	s, length := &t.coding.scales[plane], t.planes.length
	base := (c*s.a.from - z*s.t.from) * length
	offset := t.offset[plane]
	c, z = c*s.a.unit*length, z*s.t.unit*length
	largest := max(max(c, z)/limitMax, (math.Abs(base)+math.Abs(float64(offset)))/limitBaseMax)
	if !(largest < 1) {
		return limit{none: true}
	}
	l, by := limit{}, 1.
	for l.shift < limitShiftMax && largest*by*2 < 1 {
		by *= 2
		l.shift++
	}
	l.c, l.z = int16(math.Floor(c*by)), int16(math.Ceil(z*by))
	l.base = int32(math.Floor(base*by)) + offset<<l.shift
	return l
}
