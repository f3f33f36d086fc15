package kernel

import "math"

const (
	// coderLanes is how many sums a coder adds to in turn.
	coderLanes = 4
	// coderNums divides the lengths of the slices that coders get.
	coderNums = 16
)

// laneSums are the partial sums of a long sum: number i is added to sum i mod coderLanes.
type laneSums [coderLanes]float64

func (s *laneSums) sum() float64 { return (s[0] + s[2]) + (s[1] + s[3]) }

// coder is one implementation of the slow steps of encoding. All return the same bits: every
// product and sum is rounded by itself, in the order of the portable one.
type coder struct {
	name string
	// squares adds the squares of v to sums.
	squares func(sums *laneSums, v []float32)
	// widen stores v · scale · signs.
	widen func(to []float64, v []float32, signs []float64, scale float64)
	// flip multiplies y by signs.
	flip func(y, signs []float64)
	// hadamard transforms y, of 2ⁿ numbers, and multiplies it by scale.
	hadamard func(y []float64, scale float64)
	// code codes the numbers of c.
	code func(c *cells)
	// spread returns the sum of l · (15 − l) for the lower four bits l of all codes, of whole
	// lines.
	spread func(row []uint8) int
}

// activeCoder is the fastest coder that this processor runs.
var activeCoder = &coders()[0]

var portableCoder = coder{"portable", squaresPortable, widenPortable, flipPortable, hadamardPortable, codePortable, spreadPortable}

// cellKind says which planes have bits of a number.
type cellKind int

const (
	// noPlane numbers have bits in the row only.
	noPlane cellKind = iota
	// firstPlane numbers have all four bits in the first plane.
	firstPlane
	// bothPlanes numbers have two bits in each.
	bothPlanes
)

// cells describes the numbers of one part of a template, their codes, and the sums that measure
// what coding loses. The assembly knows the offsets of the fields.
type cells struct {
	y          []float64 // rotated
	row, codes []uint8   // of y
	kind       cellKind
	grain      float64 // row steps to 1
	gain       float64 // plane steps to 1
	width      float64 // of a plane's step, the unit of dots and squares

	off, norm laneSums // sums of squares: of what the row lost, and of y
	// For each plane, dots sums the products of its codes and y, and squares sums the squares of
	// its codes. The sums of the first plane are missing if it has all bits.
	dots, squares [planes]laneSums
}

func squaresPortable(sums *laneSums, v []float32) {
	for i, x := range v {
		sums[i%coderLanes] += float64(float64(x) * float64(x))
	}
}

func widenPortable(to []float64, v []float32, signs []float64, scale float64) {
	for i, x := range v {
		to[i] = float64(x) * scale * signs[i]
	}
}

func flipPortable(y, signs []float64) {
	for i, s := range signs {
		y[i] *= s
	}
}

func hadamardPortable(y []float64, scale float64) {
	for half := 1; half < len(y); half *= 2 {
		for from := 0; from < len(y); from += 2 * half {
			a, b := y[from:from+half], y[from+half:from+2*half]
			for i, u := range a {
				v := b[i]
				a[i], b[i] = u+v, u-v
			}
		}
	}
	for i := range y {
		y[i] *= scale
	}
}

func codePortable(c *cells) {
	for i, y := range c.y {
		lane := i % coderLanes
		at := float64(y * c.grain)
		code := min(max(math.Floor(at+.5), -rowMax), rowMax)
		c.row[i] = uint8(int(code) + rowZero)
		c.off[lane] += float64((at - code) * (at - code))
		c.norm[lane] += float64(y * y)
		if c.kind == noPlane {
			continue
		}
		code = min(max(math.Floor(y*c.gain), codeLeast), codeMost)
		c.codes[i] = uint8(int(code) - codeLeast)
		second := (code + .5) * c.width
		c.dots[1][lane] += float64(y * second)
		c.squares[1][lane] += second * second // exact, as are all its sums
		if c.kind == bothPlanes {
			first := (math.Floor(code/4)*4 + 2) * c.width
			c.dots[0][lane] += float64(y * first)
			c.squares[0][lane] += first * first
		}
	}
}

func spreadPortable(row []uint8) (sum int) {
	for _, code := range row {
		low := int(code & 15)
		sum += low * (15 - low)
	}
	return sum
}

// rest returns how many numbers at the end are left to the portable code.
func rest(n int) int { return n % coderNums }

// norm returns the norm of a vector. It is not finite if one of the numbers isn't.
func (k *coder) norm(sums *laneSums, v []float32) float64 {
	*sums = laneSums{}
	n := len(v) - rest(len(v))
	k.squares(sums, v[:n])
	squaresPortable(sums, v[n:])
	return math.Sqrt(sums.sum())
}

// transform applies the orthonormal Hadamard transform to y, of 2ⁿ numbers.
func (k *coder) transform(y []float64) {
	scale := 1 / math.Sqrt(float64(len(y)))
	if len(y) < coderNums {
		hadamardPortable(y, scale)
		return
	}
	k.hadamard(y, scale)
}

func (k *coder) flipAll(y, signs []float64) {
	n := len(y) - rest(len(y))
	k.flip(y[:n], signs[:n])
	flipPortable(y[n:], signs[n:])
}

func (k *coder) codeAll(c *cells) {
	n := len(c.y) - rest(len(c.y))
	if n == len(c.y) {
		k.code(c)
		return
	}
	y, row, codes := c.y, c.row, c.codes
	c.y, c.row, c.codes = y[:n], row[:n], codes[:n]
	k.code(c)
	c.y, c.row, c.codes = y[n:], row[n:], codes[n:]
	codePortable(c)
	c.y, c.row, c.codes = y, row, codes
}
