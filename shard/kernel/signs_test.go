package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// signsPiece makes a piece of random bytes with a plane of signs.
func signsPiece(r *rand.Rand, dim int) (*shape, *piece) {
	s := newShape(dim)
	coding := plainCoding(&s)
	coding.withSigns(&s)
	c := s.newChunk(flatChunks+1, coding)
	c.planes[0], c.planes[1] = make([]byte, c.planeBytes(0)), make([]byte, c.planeBytes(1))
	for j := range c.planes[0] {
		c.planes[0][j] = byte(r.Uint32())
	}
	c.rows = make([]byte, c.rowBytes(&s))
	p := c.piece(&s, 0, pieceSlots)
	return &s, &p
}

func signsAgree(t *testing.T, r *rand.Rand, dim int) {
	t.Helper()
	s, c := signsPiece(r, dim)
	shape := &c.chunk.coding.planes[0]
	whole := make([]int8, s.rowBytes)
	for i := range dim {
		whole[i] = int8(r.IntN(127) - 63)
	}
	masks := make([]uint64, c.slots/blockSlots)
	for i := range masks {
		masks[i] = r.Uint64()
	}
	p := plane{
		codes: c.planes[0], tables: signTablesOf(whole, shape.signs), signLines: shape.signs, layout: shape.layout, shift: 32,
		limit: limit{int16(r.IntN(limitMax + 1)), int16(r.IntN(limitMax + 1)), (int32(r.NormFloat64()*40) + signOffset(whole)) << 10, 10, false},
	}
	run := func(scan func(*plane)) (out []uint64, sums []int32) {
		p := p
		p.masks, p.sums = slices.Clone(masks), make([]int32, c.slots)
		scan(&p)
		for i, sum := range p.sums {
			if masks[i/blockSlots]>>(i%blockSlots)&1 == 1 {
				sums = append(sums, sum)
			}
		}
		return p.masks, sums
	}
	want, wantSums := run(signsPortable)
	for _, k := range kernels() {
		if k.signs == nil {
			continue
		}
		if got, sums := run(k.signs); !slices.Equal(got, want) || !slices.Equal(sums, wantSums) {
			t.Fatalf("%s, %d numbers: masks %x, want %x; sums %v, want %v", k.name, dim, got, want, sums, wantSums)
		}
		bare := p
		bare.masks = slices.Clone(masks)
		if k.signs(&bare); !slices.Equal(bare.masks, want) {
			t.Fatalf("%s, %d numbers: masks without sums %x, want %x", k.name, dim, bare.masks, want)
		}
	}
}

func TestKernelGivesPortableSignBounds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 45))
		signsAgree(t, r, 1+r.IntN(DimMax))
	}
}

func FuzzKernelsAgreeOnSigns(f *testing.F) {
	f.Add(uint64(1), uint16(512))
	f.Add(uint64(2), uint16(1023))
	f.Fuzz(func(t *testing.T, seed uint64, dim uint16) {
		signsAgree(t, rand.New(rand.NewPCG(seed, 46)), 1+int(dim)%DimMax)
	})
}

// The sums of the portable kernel, beside a plain product of signs and numbers.
func TestSumOfSignsIsHalfProduct(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{384, 401} {
		r := rand.New(rand.NewPCG(uint64(dim), 47))
		w := newProbableTwin(t, dim, missUsual, 3)
		w.fill(t, r, 300)
		probe := newProbe(&w.m.shape, unit(r, dim)).turn(&w.m.shape, w.m.coding)
		shape := &w.m.coding.planes[0]
		for _, c := range *w.m.chunks.Load() {
			if c.flat {
				continue
			}
			p := plane{
				codes: c.planes[0], tables: probe.tables, signLines: shape.signs, layout: shape.layout, shift: 32,
				masks: make([]uint64, len(c.live)), sums: make([]int32, c.slots),
			}
			for i := range p.masks {
				p.masks[i] = c.live[i].Load()
			}
			signsPortable(&p)
			for at, sum := range p.sums {
				if c.live[at/blockSlots].Load()>>(at%blockSlots)&1 == 0 {
					continue
				}
				y := make([]float64, dim)
				w.m.coding.rotation.applyTo(activeCoder, y, c.vector(&w.m.shape, at)[:dim], 1)
				want := 0.
				for i, x := range y {
					want += math.Copysign(.5, x) * float64(probe.whole[i])
				}
				// The offset was rounded down.
				if got := float64(sum - probe.offset[0]); got-want < 0 || got-want > .5 {
					t.Fatalf("%d numbers: got %v, want %v", dim, got, want)
				}
			}
		}
	}
}

// Without a threshold, signs leave nearly all rows until there are good hits.
func TestUselessSignsAreSkippedForAWhile(t *testing.T) {
	t.Parallel()
	const dim, n = 384, 20_000
	r := rand.New(rand.NewPCG(1, 48))
	w := newProbableTwin(t, dim, missUsual, 4)
	owner := eventOf(r, 1)
	for range n {
		w.add(t, owner, unit(r, dim))
	}
	scans := func(threshold int) (signs, second int) {
		k := portable
		k.signs = func(p *plane) { signs++; signsPortable(p) }
		k.groups = func(p *plane) { second++; groupsPortable(p) }
		q := randomQuery(r, unit(r, dim))
		q.Threshold, q.Tags, q.Limit = threshold, nil, 10
		s := w.prepared(t, q, &k)
		run(t, w.m, s)
		return signs, second
	}
	if signs, second := scans(8000); signs < 8 || second > 0 {
		t.Errorf("with a threshold: %d scans of signs, %d of the second plane", signs, second)
	}
	if signs, second := scans(0); signs > 6 || second < 6 {
		t.Errorf("without one: %d scans of signs, %d of the second plane", signs, second)
	}
}
