package kernel

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/shard/scan"
)

// tapered gives a unit vector whose numbers weigh less and less; the last eighth next to
// nothing.
func tapered(r *rand.Rand, dim int, power float64) []float32 {
	v := make([]float32, dim)
	for i := range v {
		sigma := math.Pow(float64(i+1), -power)
		if i >= dim*7/8 {
			sigma /= 50
		}
		v[i] = float32(r.NormFloat64() * sigma)
	}
	return normalise(v)
}

func TestACodingIsLearntOfTemplatesWhoseNumbersDontWeighAlike(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 20))
	for _, dim := range []int{64, 128, 192, 200, 512, 1024} {
		s := newShape(dim)
		shares := func(template func() []float32) []float64 {
			shares := make([]float64, s.lines)
			for range 500 {
				for i, x := range template() {
					shares[i/planeDims] += float64(x) * float64(x) / 500
				}
			}
			return shares
		}
		alike := learnCoding(&s, shares(func() []float32 { return unit(r, dim) }))
		if alike.coarse != s.lines || dim > 64 && alike.fine != 0 {
			t.Errorf("%d numbers that weigh alike: %d coarse lines, %d fine ones, want the plain coding", dim, alike.coarse, alike.fine)
		}
		steep := learnCoding(&s, shares(func() []float32 { return tapered(r, dim, .5) }))
		if dim == 64 {
			continue // one of its four lines is the tail
		}
		if steep.whole() || steep.coarse >= steep.fine {
			t.Errorf("%d numbers of a steep spectrum: %d coarse lines of %d, %d fine ones", dim, steep.coarse, s.lines, steep.fine)
		}
	}
}

func TestSearchesOfALearntCodingEqualThePlainScan(t *testing.T) {
	t.Parallel()
	const n = learnSlots + 3500
	for _, dim := range []int{64, 200} {
		for _, power := range []float64{0, .5} {
			r := rand.New(rand.NewPCG(uint64(dim), 21))
			w := newTwin(t, dim)
			var slots []int
			for i := range n {
				v := tapered(r, dim, power)
				switch {
				case i > n-600: // of another kind
					v = unit(r, dim)
				case i%100 == 17:
					v[0] *= 3 // not of unit norm
				}
				slots = append(slots, w.add(t, ownerOf(r, i), v))
				if i%7 == 3 { // slots of all codings are used again
					j := r.IntN(len(slots))
					w.erase(slots[j])
					slots = slices.Delete(slots, j, j+1)
				}
			}
			if c := w.m.coding.Load(); c.coarse == w.m.shape.lines && c.fine == 0 {
				t.Errorf("dimension %d, power %v: the coding is still the plain one", dim, power)
			}
			var qs []request
			for i := range 20 {
				q := tapered(r, dim, power)
				switch i % 5 {
				case 0:
					q = unit(r, dim)
				case 1: // in numbers that have no bits
					clear(q[:dim*7/8])
					normalise(q)
				case 2:
					q = near(r, w.rows[slots[r.IntN(len(slots))]].Template, .3+.7*r.Float64())
				}
				qs = append(qs, request{query: randomQuery(r, q)})
				w.agree(t, qs[i].query)
			}
			for _, k := range kernels() {
				searches, err := w.m.searchAll(w.table, qs, &k)
				if err != nil {
					t.Fatal(err)
				}
				for i, q := range qs {
					got, want := searches[i].top.hits(), scan.TopK(maps.Values(w.rows), w.table, q.query)
					if !slices.Equal(got, want) {
						t.Fatalf("%s, dimension %d, %d of %d, %+v:\ngot  %v\nwant %v", k.name, dim, i, len(qs), q.query, got, want)
					}
				}
			}
		}
	}
}

func TestAPreparedTemplateOutlivesAChangeOfTheCoding(t *testing.T) {
	t.Parallel()
	const dim = 128
	r := rand.New(rand.NewPCG(1, 22))
	w := newTwin(t, dim)
	early := make([]Prepared, 8)
	vectors := make([][]float32, len(early))
	for i := range early {
		vectors[i] = tapered(r, dim, .5)
		if err := w.m.Prepare(&early[i], vectors[i]); err != nil {
			t.Fatal(err)
		}
	}
	plain := w.m.coding.Load()
	for i := range learnSlots + 1 {
		w.add(t, ownerOf(r, i), tapered(r, dim, .5))
	}
	if w.m.coding.Load() == plain {
		t.Fatal("the coding did not change")
	}
	for i := range early {
		o := ownerOf(r, 10_000+i)
		slot, err := w.m.AddPrepared(o, &early[i])
		if err != nil {
			t.Fatal(err)
		}
		w.rows[slot] = scan.Row{Subject: o.Subject, Event: o.Event, Tags: o.Tags, Template: vectors[i]}
	}
	for _, v := range vectors {
		w.agree(t, scan.Query{Probe: near(r, v, .9), Threshold: 7000, Limit: 5})
	}
	if w.m.Free(); !w.m.coding.Load().whole() {
		t.Error("an emptied matrix keeps what it learnt")
	}
	clear(w.rows)
}
