package kernel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"facet/internal/must"
)

// hardNumbers are some at which implementations could differ.
var hardNumbers = []float64{
	0, math.Copysign(0, -1), 1, -1, .5, -.5, 1e-300, -1e-300, math.SmallestNonzeroFloat64, 1e30, -1e30, 1 << 52, 1<<53 + 2, -7.5, 62.5, 118.5, 119.5, -119.5,
}

// numbers are random ones, some of them hard.
func numbers(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64() * math.Pow(2, float64(r.IntN(12)-8))
		if r.IntN(10) == 0 {
			v[i] = hardNumbers[r.IntN(len(hardNumbers))]
		}
	}
	return v
}

// codersAgree demands of all coders the bits of the portable one, for vectors of n numbers.
func codersAgree(t *testing.T, r *rand.Rand, n int) {
	t.Helper()
	sixteens := n / coderNums * coderNums
	y, signs := numbers(r, sixteens), make([]float64, sixteens)
	v := make([]float32, sixteens)
	for i := range v {
		v[i] = float32(r.NormFloat64())
		if r.IntN(20) == 0 {
			v[i] = []float32{0, math.MaxFloat32, -math.SmallestNonzeroFloat32, float32(math.Inf(1)), float32(math.NaN())}[r.IntN(5)]
		}
		signs[i] = float64(1 - 2*r.IntN(2))
	}
	width := coderNums
	for width*2 <= n {
		width *= 2
	}
	wide, scale := numbers(r, width), math.Exp(r.NormFloat64())
	c := cells{kind: cellKind(r.IntN(3)), grain: 130 * math.Exp(r.NormFloat64()), gain: 50 * math.Exp(r.NormFloat64()), width: []float64{1, .25}[r.IntN(2)]}
	for _, sums := range []*laneSums{&c.off, &c.norm, &c.dots[0], &c.dots[1], &c.squares[0], &c.squares[1]} {
		*sums = laneSums(numbers(r, coderLanes))
	}
	for i := range c.squares { // they are of multiples of a sixteenth
		for j, x := range c.squares[i] {
			c.squares[i][j] = math.Round(x)
		}
	}
	cells := y
	for i, x := range cells { // beyond this no number of a template of norm 1 is
		cells[i] = min(max(x, -2), 2)
	}
	run := func(k coder) [][]uint64 {
		sums, to, flipped, changed := laneSums(numbers(rand.New(rand.NewPCG(1, 1)), coderLanes)), make([]float64, sixteens), slices.Clone(y), slices.Clone(wide)
		k.squares(&sums, v)
		k.widen(to, v, signs, scale)
		k.flip(flipped, signs)
		k.hadamard(changed, scale)
		c := c
		c.y, c.row, c.codes = slices.Clone(cells), make([]uint8, sixteens), make([]uint8, sixteens)
		k.code(&c)
		out := [][]uint64{wordsOf(sums[:]), wordsOf(to), wordsOf(flipped), wordsOf(changed), wordsOf(c.off[:]), wordsOf(c.norm[:])}
		for i := range planes {
			out = append(out, wordsOf(c.dots[i][:]), wordsOf(c.squares[i][:]))
		}
		codes := slices.Concat(c.row, make([]uint8, (lineBytes-len(c.row)%lineBytes)%lineBytes))
		bytes := []uint64{uint64(k.spread(codes))}
		for i := range c.row {
			bytes = append(bytes, uint64(c.row[i]), uint64(c.codes[i]))
		}
		return append(out, bytes)
	}
	want := run(portableCoder)
	for _, k := range coders() {
		for i, got := range run(k) {
			if !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("%s, %d numbers, kind %d, part %d:\ngot  %x\nwant %x", k.name, n, c.kind, i, got, want[i])
			}
		}
	}
}

// wordsOf are the bits of numbers; all that are none count as one.
func wordsOf(v []float64) []uint64 {
	words := make([]uint64, len(v))
	for i, x := range v {
		if words[i] = math.Float64bits(x); x != x {
			words[i] = math.Float64bits(math.NaN())
		}
	}
	return words
}

func TestCoderGivesPortableBits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 30))
		codersAgree(t, r, 1+r.IntN(DimMax))
	}
}

func FuzzCodersAgree(f *testing.F) {
	f.Add(uint64(1), uint16(192))
	f.Add(uint64(2), uint16(1024))
	f.Add(uint64(3), uint16(15))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		codersAgree(t, rand.New(rand.NewPCG(seed, 31)), 1+int(n)%DimMax)
	})
}

// Codes of whole templates of any dimension, with all kinds of codings.
func TestCodersAgreeOnTemplates(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 32))
		s := newShape(1 + r.IntN(300))
		c := randomCoding(r, &s)
		v := unit(r, s.dim)
		var want coded
		for i, k := range append([]coder{portableCoder}, coders()...) {
			e := newEncoder(&s, c)
			if e.coder = &k; !e.encode(v) {
				t.Fatal("a template is not finite")
			}
			if i == 0 {
				want = e.coded
				continue
			}
			if !reflect.DeepEqual(e.coded, want) {
				t.Fatalf("%s, %d numbers, coding %+v:\ngot  %+v\nwant %+v", k.name, s.dim, c, e.coded, want)
			}
		}
	}
}

// The words of lines, beside the plain description of the layout in doc.go.
func TestBitPairsFollowLayout(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 33))
	for range 1000 {
		codes := make([]uint8, 1+r.IntN(40))
		for i := range codes {
			codes[i] = uint8(r.IntN(16))
		}
		from, shift := r.IntN(len(codes)), 2*r.IntN(2)
		var want uint32
		for j, code := range codes[from:min(from+planeDims, len(codes))] {
			want |= uint32(code>>shift&3) << (8*(j%4) + 2*(j/4))
		}
		if got := pairs(codes, from, shift); got != want {
			t.Fatalf("%v from %d, shift %d: got %x, want %x", codes, from, shift, got, want)
		}
	}
}

// The same of a row's halves.
func TestRowHalvesFollowLayout(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 35))
	for range 300 {
		row := make([]uint8, lineBytes*(1+r.IntN(16)))
		for i := range row {
			row[i] = uint8(r.Uint32())
		}
		got, want, spread := make([]byte, len(row)), make([]byte, len(row)), 0
		for n, code := range row {
			at, shift := n/64*32+n%32, n%64/32*4
			want[at] |= code >> 4 << shift
			want[len(row)/2+at] |= code & 15 << shift
			spread += int(code%16) * int(15-code%16)
		}
		if halve(got, row); !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", row, got, want)
		}
		for _, k := range coders() {
			if got := k.spread(row); got != spread {
				t.Fatalf("%s: %v: the lower bits' spread is %d, want %d", k.name, row, got, spread)
			}
		}
	}
}

func TestNearlyAllTemplatesHaveBounds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 36))
	const n = 20_000
	for _, dim := range []int{64, 192} {
		for _, power := range []float64{0, .5} {
			w := newSuitedTwin(t, dim, spectrumOf(dim, func() []float32 { return tapered(r, dim, power) }))
			bare := 0
			e := newEncoder(&w.m.shape, w.m.coding)
			for range n {
				if e.encode(tapered(r, dim, power)); !e.bounded {
					bare++
				}
			}
			if bare > n/2000 {
				t.Errorf("%d numbers, power %v: %d of %d have no bounds", dim, power, bare, n)
			}
		}
	}
}

func TestErasedPreparedTemplateIsZeroed(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 200)
	var p Prepared
	must.Do(t, w.m.Prepare(&p, unit(rand.New(rand.NewPCG(1, 34)), 200)))
	p.Clear()
	e := p.enc
	zero := func(name string, zero bool) {
		if !zero {
			t.Errorf("%s is left", name)
		}
	}
	zero("the rotated template", !slices.ContainsFunc(e.y, func(x float64) bool { return x != 0 }))
	zero("a code", !slices.ContainsFunc(slices.Concat(e.codes, e.row), func(x uint8) bool { return x != 0 }))
	zero("a bound", e.bounds == [planes]bound{})
	for i := range e.parts {
		zero("a part", reflect.DeepEqual(e.parts[i], cells{}))
	}
	zero("the template", !slices.ContainsFunc(p.template[:cap(p.template)], func(x float32) bool { return x != 0 }))
}
