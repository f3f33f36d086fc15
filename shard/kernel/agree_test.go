package kernel

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"facet/engine/score"
)

// randomCoding makes any coding.
func randomCoding(r *rand.Rand, s *shape) *coding {
	coarse, fine := r.IntN(s.lines+1), r.IntN(s.lines+1)
	if coarse+fine == 0 || r.IntN(3) == 0 {
		return plainCoding(s)
	}
	sigma := 1 / math.Sqrt(float64(s.dim))
	return newCoding(s, coarse, fine, (.1+r.Float64()/2)*sigma, sigma*(1+r.Float64()), nil)
}

// randomPiece makes a piece of random bytes, which every kernel has to treat alike.
func randomPiece(r *rand.Rand, dim int) (*shape, *piece) {
	s := newShape(dim)
	c := s.newChunk(flatChunks+1, randomCoding(r, &s))
	for i := range c.planes {
		c.planes[i] = make([]byte, c.planeBytes(i))
		for j := range c.planes[i] {
			c.planes[i][j] = byte(r.Uint32())
		}
	}
	c.rows = make([]byte, c.rowBytes(&s))
	exact := make([]byte, c.exactBytes(&s))
	c.exact.Store(&exact)
	for i := range c.rows {
		c.rows[i] = byte(r.Uint32())
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
	v := make([]int8, s.rowBytes)
	positive := r.IntN(4) == 0 // then sums are largest
	for i := range s.dim {
		v[i] = int8(r.IntN(255) - 127)
		if r.IntN(8) == 0 {
			v[i] = []int8{-127, 127}[r.IntN(2)]
		}
		if positive {
			v[i] = max(v[i], -v[i])
		}
	}
	return v
}

func TestKernelGivesPortableBits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
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
	masks := make([]uint64, c.slots/blockSlots)
	var list, slots []uint16
	for i := range masks {
		masks[i] = r.Uint64() & r.Uint64()
		for g := range blockGroups {
			if r.IntN(4) > 0 && uint16(masks[i]>>(g*groupSlots)) != 0 {
				list = append(list, uint16(i*blockGroups+g))
			}
		}
	}
	for i := range c.slots {
		if r.IntN(3) == 0 {
			slots = append(slots, uint16(i))
		}
	}
	number := r.IntN(planes)
	plan := &c.chunk.coding.planes[number]
	p := plane{
		codes: c.planes[number], coarse: whole, fine: whole[plan.first:], coarseLines: plan.coarse, fineLines: plan.fine,
		run: runOf(whole), layout: plan.layout, shift: []uint64{0, 2, 32}[r.IntN(3)], list: list,
		limit: limit{int16(r.IntN(limitMax + 1)), int16(r.IntN(limitMax + 1)), int32(r.IntN(2*limitBaseMax)-limitBaseMax) >> r.IntN(16), uint64(r.IntN(20)), false},
	}
	probe := make([]float32, s.vecNums)
	for i := range dim {
		probe[i] = float32(r.NormFloat64())
	}
	l := randomLanes(r, s, c)
	type result struct {
		Masks      []uint64
		Sums, Rows []int32
		Dots       []float32
		Turned     []byte
		Lanes      []uint16
	}
	run := func(k kernel, scan func(*plane)) (got result) {
		p := p
		p.masks, p.sums = slices.Clone(masks), make([]int32, c.slots)
		for i := range c.slots {
			p.sums[i] = int32(i * 1000)
		}
		scan(&p)
		for _, g := range list { // sums of what was not wanted mean nothing
			mask := masks[g/blockGroups] >> (g % blockGroups * groupSlots)
			got.Masks = append(got.Masks, p.masks[g/blockGroups]>>(g%blockGroups*groupSlots)&0xffff)
			for i := range groupSlots {
				if mask>>i&1 == 1 {
					got.Sums = append(got.Sums, p.sums[int(g)*groupSlots+i])
				}
			}
		}
		got.Rows = make([]int32, len(slots))
		k.rows(&rows{c.rows, slots, whole, got.Rows, s.rowBytes, s.rowBytes})
		lower := make([]int32, len(slots))
		k.rows(&rows{c.rows[s.rowBytes/2:], slots, whole, lower, s.rowBytes, s.rowBytes / 2})
		got.Rows = append(got.Rows, lower...)
		got.Dots = make([]float32, len(slots))
		k.dots(&dots{c.vec, slots, probe, got.Dots})
		if k.lanes == nil {
			k.lanes, k.turn, k.drop = portable.lanes, portable.turn, 0
		}
		got.Turned = make([]byte, len(c.rows))
		k.turn(&turn{c.rows, got.Turned, l.groups, s.rowBytes})
		l := l
		for i := range l.limits {
			l.limits[i] >>= k.drop
		}
		l.run(k.drop)
		l.turned, l.masks = got.Turned, make([]uint16, laneCount*l.groups)
		k.lanes(&l)
		got.Lanes = l.masks
		return got
	}
	defined := func(drop uint) result {
		k := portable
		k.drop, k.turn = drop, func(t *turn) { turnPortable(t, drop) }
		return run(k, k.groups)
	}
	want := defined(0)
	for i, at := range slots {
		if got := score.Dot(probe, c.vec[int(at)*s.vecNums:][:s.vecNums]); got != want.Dots[i] {
			t.Fatalf("portable dot: got %v, want %v", want.Dots[i], got)
		}
	}
	for _, k := range kernels() {
		for name, scan := range map[string]func(*plane){"groups": k.groups, "blocks": k.blocks} {
			if scan == nil {
				continue
			}
			want := want
			if k.lanes != nil && k.drop > 0 {
				want = defined(k.drop)
			}
			if got := run(k, scan); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s %s, dimension %d, coding %+v: got %+v\nwant %+v", k.name, name, dim, c.chunk.coding, got, want)
			}
		}
		if k.blocks == nil {
			continue
		}
		bare, kept := p, p
		bare.shift, kept.shift = 32, 32
		bare.masks, kept.masks, kept.sums = slices.Clone(masks), slices.Clone(masks), make([]int32, c.slots)
		k.blocks(&bare)
		k.blocks(&kept)
		if !slices.Equal(bare.masks, kept.masks) {
			t.Fatalf("%s, dimension %d, coding %+v: without sums %x\nwith sums %x", k.name, dim, c.chunk.coding, bare.masks, kept.masks)
		}
	}
}

// randomLanes has limits near which the sums of a piece are.
func randomLanes(r *rand.Rand, s *shape, c *piece) lanes {
	l := lanes{
		ahead: c.rows, groups: c.slots / groupSlots, lines: s.rowBytes / 4,
		probes: make([]int8, s.rowBytes*laneCount), maskStride: 2 * c.slots / groupSlots,
	}
	for i := range l.probes {
		l.probes[i] = int8(r.IntN(255) - 127)
	}
	for i := range l.limits {
		l.limits[i] = int32(r.NormFloat64() * 5000 * math.Sqrt(float64(s.dim)))
	}
	return l
}
