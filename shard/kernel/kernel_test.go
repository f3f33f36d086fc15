package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/shard/scan"
)

// randomPiece makes a piece of random bytes, which every kernel has to treat alike.
func randomPiece(r *rand.Rand, dim int) (*shape, *piece) {
	s := newShape(dim)
	c := s.newChunk(flatChunks + 1)
	c.hi, c.mid = make([]byte, c.planeBytes(&s)), make([]byte, c.planeBytes(&s))
	c.rows = make([]byte, c.rowBytes(&s))
	for _, b := range [][]byte{c.hi, c.mid, c.rows[:c.vec]} {
		for i := range b {
			b[i] = byte(r.Uint32())
		}
	}
	for at := range c.slots {
		for i := range s.dim {
			c.vector(&s, at)[i] = float32(r.NormFloat64())
		}
	}
	p := c.piece(&s, 0, pieceSlots)
	return &s, &p
}

func randomWhole(r *rand.Rand, s *shape) []int8 {
	v := make([]int8, s.units*unitDims)
	for i := range s.dim {
		v[i] = int8(r.IntN(255) - 127)
		if r.IntN(8) == 0 {
			v[i] = []int8{-127, 127}[r.IntN(2)]
		}
	}
	return v
}

func TestEveryKernelGivesTheBitsOfThePortableOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 3))
		agreeOnPiece(t, r, 1+r.IntN(600))
	}
}

func FuzzKernelsAgree(f *testing.F) {
	f.Add(uint64(1), uint16(128))
	f.Add(uint64(2), uint16(1024))
	f.Fuzz(func(t *testing.T, seed uint64, dim uint16) {
		agreeOnPiece(t, rand.New(rand.NewPCG(seed, 4)), 1+int(dim)%DimMax)
	})
}

func agreeOnPiece(t *testing.T, r *rand.Rand, dim int) {
	t.Helper()
	s, c := randomPiece(r, dim)
	whole := randomWhole(r, s)
	masks := make([]uint16, c.slots/groupSlots)
	var list []uint16
	for i := range masks {
		if masks[i] = uint16(r.IntN(1<<16) & r.IntN(1<<16)); r.IntN(4) > 0 && masks[i] != 0 {
			list = append(list, uint16(i))
		}
	}
	p := plane{
		codes: c.hi, probe: whole, lines: s.lines, layout: s.plane, list: list, fetch: s.lines + 1,
		shift: []uint64{2, 32}[r.IntN(2)], offset: float32(r.IntN(1e5)) / 2,
		limit: limit{float32(r.NormFloat64() * 1e9), float32(r.Float64() * 1e4)},
	}
	rows := make([]uint16, 0, c.slots)
	for i := range c.slots {
		if r.IntN(3) == 0 {
			rows = append(rows, uint16(i))
		}
	}
	probe := make([]float32, s.vecNums)
	for i := range dim {
		probe[i] = float32(r.NormFloat64())
	}
	type result struct {
		Masks       []uint16
		Sums, Rests []int32
		Dots        []float32
	}
	run := func(k kernel, plane func(*plane)) (got result) {
		before := make([]int32, c.slots)
		for i := range c.slots {
			before[i] = int32(i * 1000)
		}
		p := p
		p.masks, p.sums = slices.Clone(masks), slices.Clone(before)
		plane(&p)
		got.Masks = p.masks
		for _, g := range list { // sums of what was not wanted mean nothing
			for i := range groupSlots {
				if masks[g]>>i&1 == 1 {
					got.Sums = append(got.Sums, p.sums[int(g)*groupSlots+i])
				}
			}
		}
		got.Rests = make([]int32, len(rows))
		k.rests(&rests{c.rest, rows, whole, got.Rests, s.rest, s.units, []uint64{midShift, 32}[dim%2]})
		got.Dots = make([]float32, len(rows))
		k.dots(&dots{c.vec, rows, probe, got.Dots})
		return got
	}
	want := run(portable, portable.groups)
	check := func(name string, got result, skipMasks bool) {
		t.Helper()
		same := slices.Equal(got.Sums, want.Sums) && slices.Equal(got.Rests, want.Rests)
		if skipMasks {
			for _, g := range list {
				same = same && got.Masks[g] == want.Masks[g]
			}
		} else {
			same = same && slices.Equal(got.Masks, want.Masks)
		}
		for i := range want.Dots {
			same = same && math.Float32bits(got.Dots[i]) == math.Float32bits(want.Dots[i])
		}
		if !same {
			t.Fatalf("%s, dimension %d: got %+v\nwant %+v", name, dim, got, want)
		}
	}
	for i, at := range rows {
		if got := score.Dot(probe, c.vec[int(at)*s.vecNums:][:s.vecNums]); got != want.Dots[i] {
			t.Fatalf("portable dot: got %v, want %v", want.Dots[i], got)
		}
	}
	for _, k := range kernels() {
		if k.groups == nil {
			continue
		}
		check(k.name, run(k, k.groups), false)
		if k.blocks != nil {
			check(k.name+" blocks", run(k, k.blocks), true)
		}
	}
}

// hostile are vectors made to upset the bounds.
func hostile(r *rand.Rand, dim, n int) [][]float32 {
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
		// Far from every code: all numbers of the rotated template at the cells' edges.
		y := make([]float64, dim)
		for i := range y {
			y[i] = float64(r.IntN(9) - 4)
		}
		inverse(newRotation(dim), y)
		v := make([]float32, dim)
		for i := range v {
			v[i] = float32(y[i])
		}
		all = append(all, normalise(v))
		// One large number and noise, rotated.
		for i := range y {
			y[i] = r.NormFloat64() * .01
		}
		y[x] = 1
		inverse(newRotation(dim), y)
		for i := range v {
			v[i] = float32(y[i])
		}
		all = append(all, normalise(slices.Clone(v)))
	}
	return all
}

// inverse undoes the rotation: all its steps are symmetric.
func inverse(r *rotation, y []float64) {
	for _, signs := range slices.Backward(r.signs) {
		if r.width < r.dim {
			hadamard(y[r.dim-r.width:])
		}
		hadamard(y[:r.width])
		for j, s := range signs {
			y[j] *= s
		}
	}
}

func TestHostileTemplatesAndProbesAreFoundAsByThePlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{1, 3, 64, 128, 192} {
		r := rand.New(rand.NewPCG(uint64(dim), 5))
		w := newTwin(t, dim)
		vectors := hostile(r, dim, 400)
		for i, v := range vectors {
			if math.IsNaN(float64(v[0])) { // zero, normalised
				continue
			}
			w.add(t, ownerOf(r, i), v)
			w.add(t, ownerOf(r, i+1000), v)
		}
		for _, v := range vectors {
			if !math.IsNaN(float64(v[0])) && r.IntN(3) == 0 {
				w.agree(t, randomQuery(r, v))
			}
		}
	}
}

func TestTheBoundHoldsForRowsAtTheirLimit(t *testing.T) {
	t.Parallel()
	const dim = 128
	r := rand.New(rand.NewPCG(6, 6))
	rotation, s := rotationOf(dim), newShape(dim)
	e := newEncoder(rotation)
	for round := range 6000 {
		v := unit(r, dim)
		bounds, ok := e.encode(v)
		if !ok {
			t.Fatal("a random vector has no bound")
		}
		var codes [planes][]float64
		for i, c := range e.codes {
			codes[0] = append(codes[0], float64(c>>2)-hiOffset)
			codes[1] = append(codes[1], float64(c)-midOffset)
			codes[2] = append(codes[2], midWeight*float64(c)+float64(e.lows[i])-lowOffset)
		}
		q := beyond(rotation, v, codes[round%planes], math.Acos(r.Float64()*1.4-.5))
		p := newProbe(&s, rotation, q)
		limits := p.limits(score.Dot(q, v)) // exactly reached
		var sums [planes]int32
		for i, n := range p.whole[:dim] {
			code, low := int32(e.codes[i]), int32(e.lows[i])
			sums[0] += code >> 2 * int32(n)
			sums[1] += code * int32(n)
			sums[2] += (midWeight*code + low) * int32(n)
		}
		for i, b := range bounds {
			if out(sums[i], p.offset[i], float32(b.alpha), float32(b.tan), limits[i]) {
				t.Fatalf("plane %d excludes a row that reaches the threshold: q %v, v %v", i, q, v)
			}
		}
	}
}

// beyond gives the worst probe for the bound: at angle from v, in the plane of v and
// its code, away from the code.
func beyond(rotation *rotation, v []float32, code []float64, angle float64) []float32 {
	y := make([]float64, len(v))
	for i, x := range v {
		y[i] = float64(x)
	}
	rotation.apply(y)
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

func TestNumbersThatAreNotFiniteAreRefused(t *testing.T) {
	t.Parallel()
	w := newTwin(t, 4)
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		v := []float32{1, 0, float32(x), 0}
		if _, err := w.m.Add(&Owner{}, v); err == nil {
			t.Errorf("Add took %v", v)
		}
		if _, err := w.m.Search(w.table, scan.Query{Probe: v, Limit: 1}); err == nil {
			t.Errorf("Search took %v", v)
		}
	}
	if _, err := w.m.Add(&Owner{}, make([]float32, 5)); err == nil {
		t.Error("Add took another dimension")
	}
}

func TestErasedTemplatesLeaveTheMemory(t *testing.T) {
	t.Parallel()
	const dim = 64
	r := rand.New(rand.NewPCG(7, 7))
	w := newTwin(t, dim)
	planted := unit(r, dim)
	var slots []int
	for i := range 600 {
		slots = append(slots, w.add(t, ownerOf(r, i), planted))
	}
	for _, slot := range slots {
		w.erase(slot)
	}
	for _, c := range *w.m.chunks.Load() {
		for i, b := range slices.Concat(c.hi, c.mid, c.rows) {
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

func TestAFullArenaRefusesAndLosesNothing(t *testing.T) {
	t.Parallel()
	arena := NewArena(200 << 10)
	defer arena.Close()
	m, err := New(arena, 128)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(8, 8))
	for i := range 10_000 {
		if _, err = m.Add(ownerOf(r, i), unit(r, 128)); err != nil {
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

func TestSearchesBesideWritesSeeWholeRows(t *testing.T) {
	t.Parallel()
	const dim, fixed = 64, 700
	r := rand.New(rand.NewPCG(9, 9))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	good, bad := near(r, probe, .9), near(r, probe, -.9)
	for i := range fixed {
		w.add(t, &Owner{Event: id.Event{UUID: id.UUID{1, byte(i >> 8), byte(i)}}}, good)
	}
	worth := w.table.Score(score.Dot(probe, good))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				hits, err := w.m.Search(w.table, scan.Query{Probe: probe, Threshold: 100, Limit: 2000})
				if err != nil || len(hits) < fixed {
					t.Errorf("%d hits, want at least %d; error %v", len(hits), fixed, err)
					return
				}
				for _, h := range hits {
					if h.Score != worth || h.Event.UUID[0] != 1 {
						t.Errorf("hit %v, all rows worth finding are worth %d", h, worth)
						return
					}
				}
			}
		})
	}
	var slots []int
	for i := range 20_000 {
		if len(slots) > 50 {
			w.m.Erase(slots[0])
			slots = slots[1:]
		}
		o, v := &Owner{Event: id.Event{UUID: id.UUID{1, 9, byte(i >> 8), byte(i)}}}, good
		if r.IntN(2) == 0 {
			o, v = &Owner{Event: id.Event{UUID: id.UUID{2}}}, bad
		}
		slot, err := w.m.Add(o, v)
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, slot)
	}
	close(stop)
	wg.Wait()
}

func TestARowThatIsReplacedInTheMidstOfAComparisonIsNoHit(t *testing.T) {
	t.Parallel()
	const dim = 16
	r := rand.New(rand.NewPCG(10, 10))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	old := &Owner{Event: id.Event{UUID: id.UUID{1}}}
	slot := w.add(t, old, near(r, probe, -.5))
	k := plain
	k.dots = func(d *dots) {
		w.erase(slot)
		if again := w.add(t, &Owner{Event: id.Event{UUID: id.UUID{2}}}, probe); again != slot {
			t.Fatalf("slot %d after %d", again, slot)
		}
		plain.dots(d)
	}
	s, err := w.m.newSearch(w.table, &request{query: scan.Query{Probe: probe, Limit: 3}}, &k)
	if err != nil {
		t.Fatal(err)
	}
	if hits := run(t, w.m, s); len(hits) != 0 {
		t.Errorf("got %v: the score of another event", hits)
	}
}

func FuzzSearchEqualsThePlainScan(f *testing.F) {
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
				w.add(t, ownerOf(r, i), v)
			}
		}
		for _, v := range append(given, unit(r, dim)) {
			if w.m.shape.check(v) == nil {
				w.agree(t, randomQuery(r, v))
			}
		}
	})
}
