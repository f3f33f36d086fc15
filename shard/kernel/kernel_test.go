package kernel

import (
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// hostile are vectors made to upset the bounds.
func hostile(r *rand.Rand, dim, n int) [][]float32 {
	shape := newShape(dim)
	plain := plainCoding(&shape)
	var all [][]float32
	put := func(f func(i int) float64) {
		v := make([]float32, dim)
		for i := range v {
			v[i] = float32(f(i))
		}
		all = append(all, v)
	}
	for len(all) < n {
		x := r.IntN(dim)
		put(func(int) float64 { return 0 })
		put(func(int) float64 { return 1 / math.Sqrt(float64(dim)) })
		put(func(i int) float64 { return map[bool]float64{true: 1}[i == x] })
		put(func(i int) float64 { return map[bool]float64{true: -1}[i == x] })
		put(func(int) float64 { return 1e-42 })
		put(func(int) float64 { return 1e30 })
		put(func(int) float64 { return math.MaxFloat32 })
		put(func(i int) float64 { return (1 + 1e-4*r.Float64()) * float64(1-i%2*2) / math.Sqrt(float64(dim)) })
		all = append(all, farthest(r, &shape, plain))
		// One large number and noise, rotated.
		y, v := make([]float64, dim), make([]float32, dim)
		for i := range y {
			y[i] = r.NormFloat64() * .01
		}
		y[x] = 1
		inverse(plain.rotation, y)
		for i := range v {
			v[i] = float32(y[i])
		}
		all = append(all, normalise(v))
	}
	return all
}

// farthest returns a template as far from its codes as one may be that has bounds: a random one, all of whose rotated
// numbers were moved towards the nearest edges of cells, until it would have none.
func farthest(r *rand.Rand, s *shape, c *coding) []float32 {
	e := newEncoder(s, c)
	far := unit(r, s.dim)
	e.encode(far)
	y := slices.Clone(e.y)
	for share := .02; share < 1; share += .02 {
		moved := make([]float64, s.dim)
		for i, x := range y {
			moved[i] = x + share*(math.Round(x/c.step)*c.step-x)
		}
		inverse(c.rotation, moved)
		v := make([]float32, s.dim)
		for i, x := range moved {
			v[i] = float32(x)
		}
		if e.encode(normalise(v)); !e.bounded {
			break
		}
		far = v
	}
	return far
}

// inverse undoes the rotation: all its steps are symmetric.
func inverse(r *rotation, y []float64) {
	for _, signs := range slices.Backward(r.signs) {
		from := 0
		for _, to := range r.ends {
			if part := y[from:to]; len(part) > 0 {
				width := 1 << (bits.Len(uint(len(part))) - 1)
				if width < len(part) {
					portableCoder.transform(part[len(part)-width:])
				}
				portableCoder.transform(part[:width])
			}
			from = to
		}
		for j, s := range signs {
			y[j] *= s
		}
	}
}

// All rows are warm, and then cold.
func TestColdHostileProbesEqualPlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{1, 3, 64, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 5))
		w := newTwin(t, dim)
		vectors := slices.DeleteFunc(hostile(r, dim, 400), func(v []float32) bool { return w.m.shape.check(v) != nil })
		for i, v := range slices.Concat(vectors, vectors) {
			w.add(t, eventOf(r, i), v)
		}
		for _, cold := range []float64{0, 1} {
			w.chill(r, cold)
			for _, v := range vectors {
				if r.IntN(10) == 0 {
					w.agree(t, randomQuery(r, v))
				}
			}
		}
	}
}

func TestBoundHoldsAtItsLimit(t *testing.T) {
	t.Parallel()
	s, wide := newShape(128), newShape(wideDim+5)
	sigma := 1 / math.Sqrt(128)
	for _, f := range []struct {
		shape  *shape
		coding *coding
		rows   int
	}{
		{&s, plainCoding(&s), 3000},
		{&s, liked(&s, 8, 3, .3*sigma, sigma), 3000},
		{&s, liked(&s, 6, 2, .3*sigma, 1.2*sigma), 3000},
		{&s, liked(&s, 2, 8, .6*sigma, 2*sigma), 3000},
		{&s, liked(&s, 1, 6, .8*sigma, 2.5*sigma), 3000},
		{&s, liked(&s, 7, 0, .29*sigma, 1.1*sigma), 3000},
		{&wide, plainCoding(&wide), 1000},
	} {
		r := rand.New(rand.NewPCG(6, 6))
		bounded := 0
		for range f.rows {
			bounded += boundHolds(t, r, f.shape, f.coding)
		}
		if bounded < f.rows*29/30 {
			t.Errorf("coding of %d and %d lines: %d of %d rows have bounds", f.coding.coarse, f.coding.fine, bounded, f.rows)
		}
	}
}

// likes returns the shares that numbers have for which lines of a coding are good.
func likes(s *shape, coarse, fine int) []float64 {
	shares := make([]float64, s.dim)
	for i := range shares {
		switch {
		case i >= max(coarse, fine)*planeDims:
			shares[i] = .01
		case i >= coarse*planeDims:
			shares[i] = .09
		default:
			shares[i] = 1
		}
	}
	return shares
}

// liked makes a coding for what it likes.
func liked(s *shape, coarse, fine int, step, sigma float64) *coding {
	return newCoding(s, coarse, fine, step, sigma, likes(s, coarse, fine))
}

// boundHolds demands it for a row, and tells if it has bounds.
func boundHolds(t *testing.T, r *rand.Rand, s *shape, c *coding) int {
	t.Helper()
	v := unit(r, s.dim)
	for i, share := range likes(s, c.coarse, c.fine) {
		v[i] *= float32(math.Sqrt(share))
	}
	normalise(v)
	e := newEncoder(s, c)
	e.encode(v)
	if !e.bounded {
		return 0
	}
	first, second := make([]float64, s.dim), make([]float64, s.dim)
	row, half := make([]float64, s.dim), make([]float64, s.dim)
	for i, code := range e.codes {
		row[i] = float64(e.row[i]) - rowZero
		half[i] = float64(e.row[i]&0xf0) + lowZero - rowZero
		if i >= c.parts[1] {
			continue
		}
		first[i], second[i] = float64(code)-7.5, float64(code)-7.5
		if i >= c.parts[0] {
			first[i] = 4*float64(code>>2) - 6
			if c.fine > c.coarse {
				first[i], second[i] = first[i]/4, second[i]/4
			}
		}
	}
	codes := [][]float64{first, second, row, half}
	angle := math.Acos(r.Float64()*1.4 - .5)
	if r.IntN(4) == 0 {
		angle = -angle // the worst for the least similarity
	}
	q := beyond(c.rotation, v, codes[r.IntN(4)], angle)
	turned := newProbe(s, q).turn(s, c)
	turned.state(score.Dot(q, v)) // exactly reached
	for p, code := range codes[:planes] {
		scale := 1.
		switch {
		case p == 0 && c.fine == 0:
			scale = .25
		case p == 1 && c.fine > c.coarse:
			scale = 4
		}
		sum := 0.
		for i, n := range turned.whole[:s.dim] {
			sum += code[i] * scale * float64(n)
		}
		// The offset was rounded down.
		if l := &turned.limits[p]; !l.none && out(int32(math.Ceil(sum))+turned.offset[p], e.bounds[p], l) {
			t.Fatalf("plane %d of %+v excludes a row that reaches the threshold: q %v, v %v", p, c, q, v)
		}
	}
	sum := int32(0)
	for i, n := range turned.whole {
		sum += int32(e.row[i]) * int32(n)
	}
	reached := score.Dot(q, v)
	least, most := turned.similarities(sum)
	if reached < least || reached > most {
		t.Fatalf("%+v: a similarity of %v, bounds %v and %v: q %v, v %v", c, reached, least, most, q, v)
	}
	if sum < turned.row {
		t.Fatalf("%+v excludes a row that reaches the threshold by its row: q %v, v %v", c, q, v)
	}
	sum = 0
	for i, n := range turned.whole {
		sum += int32(e.row[i]>>4) * int32(n)
	}
	if sum < turned.half {
		t.Fatalf("%+v excludes a row that reaches the threshold by its upper half: q %v, v %v", c, q, v)
	}
	for drop := range uint(5) {
		sum = 0
		for i, n := range turned.whole {
			sum += int32(e.row[i]>>drop) * int32(n)
		}
		if sum < turned.laneLimit(drop) {
			t.Fatalf("%+v excludes a row that reaches the threshold by its code without %d bits: q %v, v %v", c, drop, q, v)
		}
	}
	return 1
}

// beyond returns the worst probe for the bound: at angle from v, in the plane of v and
// its code, away from the code.
func beyond(rotation *rotation, v []float32, code []float64, angle float64) []float32 {
	y := make([]float64, len(v))
	for i, x := range v {
		y[i] = float64(x)
	}
	rotation.apply(&portableCoder, y)
	var dot, square float64
	for i, c := range code {
		dot += c * y[i]
		square += c * c
	}
	cos := dot / math.Sqrt(square)
	sin := math.Sqrt(1 - cos*cos)
	toCode, away := math.Cos(math.Acos(cos)+angle), math.Sin(math.Acos(cos)+angle)
	for i, c := range code {
		c /= math.Sqrt(square)
		y[i] = toCode*c + away*(y[i]-cos*c)/sin
	}
	inverse(rotation, y)
	q := make([]float32, len(v))
	for i := range q {
		q[i] = float32(y[i])
	}
	return normalise(q)
}

func TestNonFiniteNumbersAreRefused(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 4)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		v := []float32{1, 0, float32(x), 0}
		if _, err := w.m.Add(w.own(&event{}), v); err == nil {
			t.Errorf("Add took %v", v)
		}
		if _, err := w.m.Search(w.table, scan.Query{Probe: v, Limit: 1}); err == nil {
			t.Errorf("Search took %v", v)
		}
	}
	if _, err := w.m.Add(w.own(&event{}), make([]float32, 5)); err == nil {
		t.Error("Add took another dimension")
	}
}

func TestErasedTemplatesLeaveMemory(t *testing.T) {
	t.Parallel()
	const dim = 64
	r := rand.New(rand.NewPCG(7, 7))
	w := newTwin(t, dim)
	planted := unit(r, dim)
	var slots []int
	for i := range 600 {
		slots = append(slots, w.add(t, eventOf(r, i), planted))
	}
	for _, slot := range slots {
		w.erase(slot)
	}
	for _, c := range *w.m.chunks.Load() {
		for i, b := range slices.Concat(c.planes[0], c.planes[1], c.rows, *c.exact.Load()) {
			if b != 0 {
				t.Fatalf("byte %d of a chunk of %d slots is %d", i, c.slots, b)
			}
		}
	}
	word := binary.LittleEndian.AppendUint32(nil, math.Float32bits(planted[0]))
	if slices.Equal(word, make([]byte, 4)) {
		t.Fatal("the planted template begins with 0")
	}
}

func TestFullArenaLosesNothing(t *testing.T) {
	t.Parallel()
	arena := NewArena(200 << 10)
	defer arena.Close()
	list := new(OwnerList)
	m, err := New(arena, 128, list)
	must.Do(t, err)
	r := rand.New(rand.NewPCG(8, 8))
	for range 10_000 {
		if _, err = m.Add(list.Add(new(Owner), nil), unit(r, 128)); err != nil {
			break
		}
	}
	if n := m.Len(); err == nil || n < 128 || n > 400 {
		t.Fatalf("%d templates in 200 KiB, then error %v", n, err)
	}
	hits, err := m.Search(newTable(t), scan.Query{Probe: unit(r, 128), Limit: 1000})
	if err != nil || len(hits) != m.Len() {
		t.Fatalf("%d hits of %d, error %v", len(hits), m.Len(), err)
	}
}

func TestRowReplacedDuringComparisonIsNoHit(t *testing.T) {
	t.Parallel()
	const dim = 16
	r := rand.New(rand.NewPCG(10, 10))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	old := &event{Event: id.Event{UUID: id.UUID{1}}}
	slot := w.add(t, old, near(r, probe, -.5))
	k := plain
	k.dots = func(d *dots) {
		w.erase(slot)
		if again := w.add(t, &event{Event: id.Event{UUID: id.UUID{2}}}, probe); again != slot {
			t.Fatalf("slot %d after %d", again, slot)
		}
		plain.dots(d)
	}
	s, err := w.m.newSearch(w.table, &request{query: scan.Query{Probe: probe, Limit: 3}}, &k)
	must.Do(t, err)
	if hits := run(t, w.m, s); len(hits) != 0 {
		t.Errorf("got %v: the score of another event", hits)
	}
}

func FuzzSearchEqualsPlainScan(f *testing.F) {
	f.Add(uint8(8), []byte("a few numbers that stand for floats of any kind, some of them large"))
	f.Add(uint8(33), make([]byte, 400))
	f.Fuzz(func(t *testing.T, width uint8, raw []byte) {
		dim := 1 + int(width)%80
		w := newTwin(t, dim)
		r := rand.New(rand.NewPCG(uint64(width), uint64(len(raw))))
		var given [][]float32
		for i := 0; i < len(raw) && len(given) < 3; i += 4 * dim {
			v := make([]float32, dim)
			for j := range v {
				var word [4]byte
				copy(word[:], raw[min(i+4*j, len(raw)):])
				v[j] = math.Float32frombits(binary.LittleEndian.Uint32(word[:]))
			}
			given = append(given, v)
		}
		for i := range 200 { // more than the flat chunks hold
			v := unit(r, dim)
			if len(given) > 0 && i%3 > 0 {
				v = slices.Clone(given[i%len(given)])
				if i%3 == 2 {
					v = normalise(v)
				}
			}
			if w.m.shape.check(v) == nil {
				w.add(t, eventOf(r, i), v)
			}
		}
		for _, v := range append(given, unit(r, dim)) {
			if w.m.shape.check(v) == nil {
				w.agree(t, randomQuery(r, v))
			}
		}
		w.chill(r, 1)
		for _, v := range append(given, unit(r, dim)) {
			if w.m.shape.check(v) == nil {
				w.agree(t, randomQuery(r, v))
			}
		}
	})
}
