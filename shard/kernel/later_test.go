package kernel

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/shard/scan"
)

// at returns a unit vector whose cosine with v is cos.
func at(r *rand.Rand, v []float32, cos float64) []float32 {
	u := unit(r, len(v))
	dot := score.Dot(u, v)
	for i := range u {
		u[i] -= dot * v[i]
	}
	for i, x := range normalise(u) {
		u[i] = float32(cos*float64(v[i]) + math.Sqrt(1-cos*cos)*float64(x))
	}
	return normalise(u)
}

func TestDeferredRowsAreNotLost(t *testing.T) {
	t.Parallel()
	const dim, most, many = 32, 1 << 16, 1<<16 + 12_000
	r := rand.New(rand.NewPCG(1, 12))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	for i := range 200 {
		w.add(t, eventOf(r, i), at(r, probe, .9))
	}
	for i := range many {
		v := at(r, probe, .88)
		if i%5000 == 4999 {
			v = at(r, probe, .95) // the limit rises when others are put off already
		}
		w.add(t, eventOf(r, 1000+i), v)
	}
	q := scan.Query{Probe: probe, Limit: 12}
	want := scan.TopK(maps.Values(w.rows), w.table, q)
	for _, k := range kernels() {
		if k.groups == nil {
			continue
		}
		inner, asked := k.rows, 0
		k.rows = func(r *rows) { asked += len(r.list); inner(r) }
		s := w.prepared(t, q, &k)
		s.laterMax = most
		longest, last := 0, 0
		s.stop = func() error {
			if s.put != nil {
				longest = max(longest, s.put[lateList].n)
				last = max(last, s.put[lastList].n)
			}
			return nil
		}
		if got := run(t, w.m, s); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", k.name, got, want)
		}
		if longest < most/2 || longest > most+pieceSlots || asked > many/2 {
			t.Errorf("%s: %d rows were put off at most, %d looked at", k.name, longest, asked)
		}
		if last == 0 || last > lastMax {
			t.Errorf("%s: %d rows that their codes left were put off at most", k.name, last)
		}
	}
}

func TestKernelGivesSameDeferredRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 13))
	const blocks, lines = 24, 3
	shape := newPlaneShape(lines, 0, 0, 32)
	for round := range 100 {
		p := put{
			masks: make([]uint64, blocks), sums: make([]int32, blocks*blockSlots), plane: make([]byte, blocks*shape.layout.blockBytes),
			layout: shape.layout, first: uint32(64 * r.IntN(100)),
			limit: limit{c: int16(r.IntN(limitMax + 1)), base: int32(r.IntN(1<<24) - 1<<23), shift: uint64(r.IntN(3))},
		}
		for i := range p.masks {
			p.masks[i] = r.Uint64() & r.Uint64() & r.Uint64() >> r.IntN(64)
		}
		for i := range p.sums {
			p.sums[i] = int32(r.IntN(1<<24) - 1<<23)
		}
		for i := range p.plane {
			p.plane[i] = byte(r.Uint32())
		}
		f := sift{limit: limit{c: int16(r.IntN(limitMax + 1)), z: int16(r.IntN(limitMax + 1)), base: p.limit.base, shift: p.limit.shift}}
		if round%2 == 0 {
			f.limit = limit{base: -1 << 23} // most are left
		}
		var want string
		for _, k := range append([]kernel{portable}, kernels()...) {
			if k.put == nil {
				continue
			}
			soon, late := new(later), new(later)
			p.soon, p.late = soon, late
			got := ""
			for range 2 { // the second time behind the first
				n := left(p.masks)
				soon.room(n)
				late.room(n)
				k.put(&p)
				got += fmt.Sprintln(soon.at[:soon.n], soon.bounds[:soon.n], soon.sums[:soon.n], late.at[:late.n], late.bounds[:late.n], late.sums[:late.n])
			}
			f.list = late
			for f.from = 0; f.from < late.n; f.from += f.rows { // what follows must stay
				f.rows = min(late.n-f.from, 37)
				k.sift(&f)
				to := f.from + f.left
				got += fmt.Sprintln(late.at[f.from:to], late.bounds[f.from:to], late.sums[f.from:to])
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("round %d: %s:\n%s\nwant\n%s", round, k.name, got, want)
			}
		}
	}
}
