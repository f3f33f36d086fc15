package kernel

import "math"

const (
	probeMax = 127
	// turnMax is the largest angle for which the bound holds: with the largest angle of a code,
	// acos .75, it is less than π.
	turnMax = .75 * math.Pi
	// tailMost and rowTailMost are the largest parts of the norm that a probe and a row may have in
	// numbers without bits. With angles of codes up to acos .9, no sum of angles reaches π then.
	tailMost, rowTailMost = .6, .7
	// turnMost is the largest angle by which rounding may turn a probe that has such numbers.
	turnMost = .2
	// roundSlack covers the rounding of float32 in a scan and in score.Dot for DimMax numbers,
	// relative to norms of 1.
	roundSlack = 3e-5

	probeNormLeast, probeNormMost = 1e-3, 1e3

	// limitMax is the largest c or z of a limit and limitBaseMax about the largest base, so that
	// the base and both products fit 32 bits.
	limitMax, limitBaseMax = math.MaxInt16, 1 << 30
	limitShiftMax          = 30
)

// probe is the template to search with.
type probe struct {
	nums []float32 // padded to vecNums
	norm float64
	bare bool // without bounds
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

// turned is a probe rotated and rounded for the rows of one coding.
type turned struct {
	coding *coding
	probe  *probe
	// whole is the rounded probe, padded to rowBytes.
	whole []int8
	// planes describes the numbers that planes have, and rows all numbers.
	planes, rows rounded
	tail         float64       // norm of the numbers without bits, for a probe of norm 1
	offset       [planes]int32 // what the offset of the codes adds to the planes' sums
	rowOffset    int32         // the same for the rows
	sum          int32         // of whole
	positive     int32         // sum of the positive numbers of whole
	run          int           // of planes
	// unit is the cosine that 1 adds to a row's sum, 0 if rows have no bounds, and off the largest
	// difference between that cosine and the row's.
	unit, off float64

	least  float32 // the similarity that the limits are for
	limits [planes]limit
	looks  [planes]limit // looks are limits without the angles of codes: other rows look out
	row    int32         // rows with a smaller sum are out
	half   int32         // rows with a smaller sum of their upper half are out
	even   int32         // rows with a smaller sum look out
}

// rounded describes numbers of a probe of norm 1 and their rounded values.
type rounded struct {
	norm   float64
	length float64 // norm after rounding
	turn   float64 // angle between the numbers before and after
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
	for i, x := range y {
		t.whole[i] = int8(math.Round(x / largest * probeMax))
		t.sum += int32(t.whole[i])
		t.positive += max(int32(t.whole[i]), 0)
	}
	t.run = runOf(t.whole)
	t.rowOffset = rowZero * t.sum
	coded := c.parts[1]
	t.planes, t.rows = round(y[:coded], t.whole), round(y, t.whole)
	sinTurn, cosTurn := math.Sincos(t.rows.turn)
	if t.rows.length > 0 && cosTurn > .5 {
		off := rowError(c.dim) / c.grain
		t.unit, t.off = cosTurn/(t.rows.length*c.grain), off+sinTurn*(1+off)+roundSlack
	}
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
	case c.fine > c.coarse:
		t.offset = [planes]int32{half(15*sums[0] + 3*sums[1]), half(60*sums[0] + 15*sums[1])}
	case c.fine == 0:
		t.offset = [planes]int32{half(3 * sums[1]), half(15 * sums[1])}
	default:
		t.offset = [planes]int32{half(15*sums[0] + 12*sums[1]), half(15*sums[0] + 15*sums[1])}
	}
	return t
}

// runOf returns how many successive lines of planes, wherever they begin, have sums of 16 bits: four
// times the largest or the least sum of the even or the odd pairs of two bytes of a slot.
func runOf(whole []int8) (run int) {
	const most = math.MaxInt16 / (4 * 3)
	lines := len(whole) / planeDims
	run = lines
	for first, last, sum := 0, 0, int32(0); last < lines; last++ {
		sum += lineMost(whole[last*planeDims:])
		for ; sum > most; first++ {
			sum -= lineMost(whole[first*planeDims:])
			run = min(run, last-first)
		}
	}
	return run
}

// lineMost returns a bound of what the numbers of a line add to a sum, for codes of 1.
func lineMost(line []int8) (most int32) {
	for at := 0; at < planeDims/2; at += 2 {
		var low, high int32
		for _, n := range []int8{line[at], line[at+1], line[at+8], line[at+9]} {
			low += min(int32(n), 0)
			high += max(int32(n), 0)
		}
		most = max(most, -low, high)
	}
	return most
}

// half returns half of an offset, rounded down. A sum below the rounded offset is also below the
// exact one.
func half(n int32) int32 { return n >> 1 }

// limit excludes rows of a plane: a row with sum s and bound (a, t) is out if s < (base + a·c −
// t·z) / 2ˢʰⁱᶠᵗ, rounded down. The products fit 23 bits, base 30. c and z are not
// negative.
type limit struct {
	c, z  int16
	base  int32
	shift uint64
	none  bool // excludes nothing
}

// state computes the limits for rows of at least the given similarity.
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

// rowLimits returns the limits of row codes. Let the angle ψ round a probe q of norm 1 to q', and c
// + ρ be the row x in steps 1/grain, with c its code. Then q·x ≤ (cos ψ/|q'| · q'·c + sin ψ · |c| +
// |ρ|)/grain. row is the limit from this. even leaves out ρ and ψ, which usually matter little.
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

// similarities returns the least and the largest similarity that a bounded row with this sum of its
// code may have, certified as rowLimits are; infinities if there is no bound.
func (t *turned) similarities(sum int32) (least, most float32) {
	if sum == noBounds || t.unit == 0 {
		return float32(math.Inf(-1)), float32(math.Inf(1))
	}
	cos, off := float64(sum-t.rowOffset)*t.unit, t.off
	off += normSlack * (math.Abs(cos) + off) // the row's norm may be a little more or less than 1
	return float32((cos - off) * t.probe.norm), float32((cos + off) * t.probe.norm)
}

// halfLimit returns the limit for sums of upper halves. The sum of a code is 16 times the sum of
// its upper half plus the sum of its lower half. The latter is at most lowZero times the sum of the
// probe's numbers, plus the norm of these numbers times the root of lowError.
func (t *turned) halfLimit() int32 {
	if t.row == math.MinInt32 {
		return math.MinInt32
	}
	lower := lowZero*float64(t.sum) + t.rows.length*math.Sqrt(lowError(t.coding.dim))
	return int32(max(math.Floor((float64(t.row)-lower)/16)-1, math.MinInt32))
}

// laneLimit returns the limit for sums of codes without their lower bits. The sum of a code is that sum
// times a power of two, plus the sum of the lower bits, which is largest if they are all set for the
// positive numbers of the probe, and for no others.
func (t *turned) laneLimit(drop uint) int32 {
	if t.row == math.MinInt32 || drop == 0 {
		return t.row
	}
	least := int64(t.row) - int64(t.positive)<<drop + int64(t.positive) // of the upper bits
	return int32(max(-(-least >> drop), math.MinInt32))
}

// planeLimits computes the limits of the planes; doc.go derives them. No rounding makes a limit too
// strict. A smaller cos τ covers the rounding of float32 in scans and in score.Dot. a, t and the
// limits are rounded in the safe direction, since C and Z are not negative.
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
	if t.planes.length == 0 {
		return
	}
	cos = min(max(cos, -1), 1)
	sin := math.Sqrt(1 - cos*cos)
	sinTurn, cosTurn := math.Sincos(turn)
	norm := t.planes.norm
	if t.coding.whole() {
		norm = 1
	}
	c := cos/norm*cosTurn - sin*sinTurn
	z := sin*cosTurn + max(cos, 0)/norm*sinTurn
	z = math.Hypot(z, t.tail/norm+roundSlack)
	if !(c >= 0) { // rounding a down would be wrong
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

// newLimit scales C and Z to integers.
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
