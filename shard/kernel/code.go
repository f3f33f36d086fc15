package kernel

import "math"

const (
	// boundMax is the largest number of a bound, and boundOne about what they are.
	boundMax, boundOne = math.MaxInt16, 1 << 14
	// boundLeast is the least a, which must not lose too much when it is rounded.
	boundLeast = 1 << 12
	// cosLeast is the least cos φ of a bound, and cosLeastTail of one with a tail.
	cosLeast, cosLeastTail = .75, .9

	// normSlack is how far a template's norm may be from 1; rows beyond it are
	// always compared exactly.
	normSlack = 1.0 / (1 << 13)
	// boundSlack is how far a stored a may be from the true one, relatively.
	boundSlack = .5 / boundLeast

	// rowMax is the largest code of a row, which is stored plus rowZero, as 7 bits.
	rowMax, rowZero = 63, 64
)

// rowError is how far a row's code may be from the row, in steps of the code: more than
// what rounding does to nearly all of them.
func rowError(dim int) float64 { return .29*math.Sqrt(float64(dim)) + .8 }

// bound is what a row stores for a plane.
type bound struct{ a, t int16 }

// coded is a template in a coding.
type coded struct {
	// codes are 4 bits a number: the pair of the first plane, or the coarse one, and
	// the next.
	codes  []uint8
	row    []uint8 // padded to rowBytes
	bounds [planes]bound
	// bounded is false if the bounds can't be stated, so that the row has to be
	// compared exactly in every search.
	bounded bool
}

// encoder turns templates into codes; not for concurrent use.
type encoder struct {
	coding *coding
	y      []float64
	coded
}

func newEncoder(s *shape, c *coding) *encoder {
	return &encoder{coding: c, y: make([]float64, s.dim), coded: newCoded(s)}
}

func newCoded(s *shape) coded {
	return coded{codes: make([]uint8, s.dim), row: make([]uint8, s.rowBytes)}
}

// clear zeroes what is left of a template.
func (e *encoder) clear() {
	clear(e.y)
	clear(e.codes)
	clear(e.row)
	e.bounds, e.bounded = [planes]bound{}, false
}

// encode fills coded.
func (e *encoder) encode(v []float32) {
	e.clear()
	var square float64
	for i, x := range v {
		e.y[i] = float64(x)
		square += float64(x) * float64(x)
	}
	norm := math.Sqrt(square)
	if !(math.Abs(norm-1) <= normSlack) {
		return
	}
	c := e.coding
	c.rotation.apply(e.y)
	for i := range e.y {
		e.y[i] /= norm
	}
	e.bounded = e.encodeRow() && e.encodePlanes()
}

// encodeRow fills the row, and tells if it is near enough.
func (e *encoder) encodeRow() bool {
	var square float64
	for i, y := range e.y {
		y *= e.coding.grain
		code := min(max(math.Floor(y+.5), -rowMax), rowMax)
		e.row[i] = uint8(int(code) + rowZero)
		square += (y - code) * (y - code)
	}
	most := rowError(e.coding.dim)
	return square <= most*most
}

// encodePlanes fills codes and bounds, and tells if these can be stated.
func (e *encoder) encodePlanes() bool {
	c := e.coding
	var dot, square [planes]float64
	var norm float64 // squared, of what has bits
	for i, y := range e.y[:c.parts[1]] {
		norm += y * y
		gain := 1.
		if i >= c.parts[0] && c.fine > c.coarse {
			gain = 4
		}
		code := uint8(min(max(math.Floor(y*gain/c.step), -8), 7) + 8)
		e.codes[i] = code
		second := (float64(code) - 7.5) / gain
		first := second
		if i >= c.parts[0] {
			first = (4*float64(code>>2) - 6) / gain
		}
		dot[0] += y * first
		square[0] += first * first
		dot[1] += y * second
		square[1] += second * second
	}
	var tail float64
	for _, y := range e.y[c.parts[1]:] {
		tail += y * y
	}
	t := math.Sqrt(tail)
	if c.whole() {
		t = 0
	}
	unit := [planes]float64{1, 1}
	switch {
	case c.fine > c.coarse:
		unit[1] = 4
	case c.fine == 0:
		unit[0] = .25
	}
	ok := true
	for p := range planes {
		b, fine := c.bound(dot[p]*unit[p], math.Sqrt(square[p])*unit[p], math.Sqrt(norm), t, c.units[p])
		e.bounds[p] = b
		ok = ok && fine
	}
	return ok
}

// bound states the bound of numbers of the given norm whose code, of length code, has
// the inner product dot with them, and of the others, of norm tail.
func (c *coding) bound(dot, code, norm, tail, unit float64) (b bound, ok bool) {
	least := cosLeast
	if !c.whole() {
		least = cosLeastTail
	}
	cos := min(dot/(code*norm), 1)
	if !(cos > least) || tail > rowTailMost {
		return b, false
	}
	inverse := code * cos / norm // 1/α
	slope := math.Hypot(math.Sqrt(1-cos*cos)/cos, tail) * inverse
	a, t := math.Round(inverse/unit), math.Ceil(slope/unit+1e-3)
	if !(a >= boundLeast && a <= boundMax && t <= boundMax) {
		return b, false
	}
	return bound{int16(a), int16(t)}, true
}
