package kernel

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// missUsual is the share of hits that a node's setting permits to lose.
const missUsual = 5e-10

// newProbableTwin is newTwin with bounds that lose so many hits; the same seed gives the same ones.
func newProbableTwin(t testing.TB, dim int, miss float64, seed uint64) *twin {
	t.Helper()
	arena := NewArena(0)
	must.Do(t, arena.Probable(miss))
	arena.codings.seed = func() [seedBytes]byte { return [seedBytes]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)} }
	return newTwinOf(t, arena, dim)
}

// angled returns a unit vector at a cosine of v, to what float32 holds.
func angled(r *rand.Rand, v []float32, cos float64) []float32 {
	u, dot, square := make([]float64, len(v)), 0., 0.
	for i, x := range v {
		u[i] = r.NormFloat64()
		dot += u[i] * float64(x)
	}
	for i, x := range v {
		u[i] -= dot * float64(x)
		square += u[i] * u[i]
	}
	q := make([]float32, len(v))
	for i, x := range v {
		q[i] = float32(cos*float64(x) + math.Sqrt((1-cos*cos)/square)*u[i])
	}
	return q
}

// halfTable is a table whose score 5000 has the cosine .5.
func halfTable(t *testing.T) *score.Table {
	t.Helper()
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: .5, Score: 5000}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	must.Do(t, err)
	return table
}

// Probes that reach the threshold by a hair, each of one of the rows. The first plane has half of
// what may be lost, and excludes nearly all rows, so that the second one is seldom asked.
func TestProbableBoundLosesStatedShare(t *testing.T) {
	t.Parallel()
	const rows, threshold = 500, .5
	for _, f := range []struct {
		dim, rotations, probes int
		miss                   float64
	}{{64, 4, 500, .02}, {128, 6, 800, .002}, {512, 1, 800, .02}} {
		r := rand.New(rand.NewPCG(uint64(f.dim), 40))
		lost, asked := 0, 0
		for rotation := range f.rotations {
			w := newProbableTwin(t, f.dim, f.miss, uint64(rotation))
			table := halfTable(t)
			vectors := make([][]float32, rows)
			for i := range vectors {
				vectors[i] = unit(r, f.dim)
				w.add(t, eventOf(r, i), vectors[i])
			}
			first := (*w.m.chunks.Load())[flatChunks].first // those before have no bounds
			for i := range f.probes {
				at := first + i%(rows-first)
				q := scan.Query{Probe: angled(r, vectors[at], threshold+1e-6), Threshold: 5000, Limit: 50}
				hits, err := w.m.Search(table, q)
				must.Do(t, err)
				asked++
				if !slices.ContainsFunc(hits, func(h scan.Hit) bool { return h.Event == w.rows[at].Event }) {
					lost++
				}
			}
		}
		most, least := f.miss*float64(asked), f.miss*float64(asked)/50
		if got := float64(lost); got > most/2+3*math.Sqrt(most/2) || got < least {
			t.Errorf("%d numbers: %d of %d hits are lost, want %v at most, and more than %v", f.dim, lost, asked, most/2, least)
		}
	}
}

// A page of subjects loses no hit, even where searches may lose many.
func TestPageOfSubjectsUsesNoProbableBound(t *testing.T) {
	t.Parallel()
	const rows, dim, threshold = 600, 128, .5
	r := rand.New(rand.NewPCG(dim, 41))
	w := newProbableTwin(t, dim, missMost, 1)
	table := halfTable(t)
	vectors := make([][]float32, rows)
	for i := range vectors {
		vectors[i] = unit(r, dim)
		w.add(t, eventOf(r, i), vectors[i])
	}
	for i := range rows / 3 {
		q := scan.Query{Probe: angled(r, vectors[i], threshold+1e-6), Threshold: 5000, Limit: 50, After: &id.Subject{}}
		alone, err := w.m.Search(table, q)
		must.Do(t, err)
		together, err := w.m.SearchAll(table, slices.Repeat([]scan.Query{q}, laneCount))
		must.Do(t, err)
		want := scan.TopK(maps.Values(w.rows), table, q)
		if !slices.Equal(alone, want) || !slices.Equal(together[1], want) {
			t.Fatalf("row %d: got %v alone, %v together, want %v", i, alone, together[1], want)
		}
	}
}

func TestProbableSearchEqualsPlainScan(t *testing.T) {
	t.Parallel()
	for _, dim := range []int{1, 2, 3, 17, 128, 200, 400} {
		r := rand.New(rand.NewPCG(uint64(dim), 41))
		w := newProbableTwin(t, dim, missUsual, 7)
		centre := unit(r, dim)
		var slots []int
		for i := range 900 {
			v := unit(r, dim)
			switch {
			case i%4 == 0:
				v = near(r, centre, r.Float64())
			case i%4 == 1:
				v = tapered(r, dim, 1)
			case i%100 == 2:
				v[0] *= 3 // not of unit norm
			}
			slots = append(slots, w.add(t, eventOf(r, i), v))
			if r.IntN(4) == 0 {
				slots = w.eraseOne(r, slots)
			}
		}
		var qs []request
		for i := range 18 {
			q := near(r, centre, .4+.6*r.Float64())
			if i%3 == 0 && dim > 1 {
				q = angled(r, w.rows[slots[r.IntN(len(slots))]].Template, .4+.6*r.Float64())
			}
			qs = append(qs, request{query: randomQuery(r, q)})
			w.agree(t, qs[i].query)
		}
		for _, v := range hostile(r, dim, 10) {
			if w.m.shape.check(v) == nil {
				w.agree(t, randomQuery(r, v))
			}
		}
		w.agreeAll(t, qs)
	}
}

// The tails of a circle and of a sphere in three dimensions are known; the others were computed
// by another program, from the incomplete beta function.
func TestKappaIsSphereTail(t *testing.T) {
	t.Parallel()
	f := func(dim int, miss, want float64) {
		t.Helper()
		if got := sphereTail(dim, miss); !(got >= want && got < want*1.0005) {
			t.Errorf("%d numbers, %v: got %v, want %v", dim, miss, got, want)
		}
	}
	f(1, 1e-3, 1)
	f(2, 1e-3, 1)
	f(3, 1e-3, math.Cos(math.Pi*1e-3))
	f(4, 1e-3, 1-2e-3)
	f(4, .1, .8)
	f(128, 2.5e-10, .5149718)
	f(192, 1e-3, .2216843)
	f(512, 2.5e-10, .2703737)
	f(1024, 2.5e-10, .1927571)
}

func TestHaarMatrixIsOrthogonalAndOwn(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 42))
	var first [][]float64
	for _, dim := range []int{1, 5, 64, 130, 512, 512} {
		arena := NewArena(0)
		must.Do(t, arena.Probable(missUsual))
		w := newTwinOf(t, arena, dim)
		a, b := unit(r, dim), unit(r, dim)
		turn := func(v []float32) []float64 {
			y := make([]float64, dim)
			w.m.coding.rotation.applyTo(activeCoder, y, v, 1)
			again := make([]float64, dim)
			for i, x := range v {
				again[i] = float64(x)
			}
			if w.m.coding.rotation.apply(activeCoder, again); !slices.Equal(y, again) {
				t.Errorf("%d numbers are turned in two ways", dim)
			}
			return y
		}
		x, y := turn(a), turn(b)
		var dot, want, norm float64
		for i := range dim {
			dot += x[i] * y[i]
			want += float64(a[i]) * float64(b[i])
			norm += x[i] * x[i]
		}
		if math.Abs(dot-want) > 4e-6 || math.Abs(norm-1) > 4e-6 {
			t.Errorf("%d numbers: the inner product %v became %v, the norm 1 %v", dim, want, dot, norm)
		}
		if dim == 512 {
			e := make([]float32, dim)
			e[0] = 1
			first = append(first, turn(e))
		}
	}
	if slices.Equal(first[0], first[1]) {
		t.Error("two arenas have one matrix")
	}
}

func TestInvalidProbabilityIsRefused(t *testing.T) {
	t.Parallel()
	for _, miss := range []float64{0, -1, .2, 1, math.NaN(), math.Inf(1)} {
		if err := NewArena(0).Probable(miss); !errors.Is(err, ErrProbable) {
			t.Errorf("%v: %v, want ErrProbable", miss, err)
		}
	}
	arena := NewArena(0)
	if _, err := New(arena, 8, nil); err != nil {
		t.Fatal(err)
	}
	if err := arena.Probable(missUsual); !errors.Is(err, ErrProbable) {
		t.Errorf("after the first matrix: %v, want ErrProbable", err)
	}
}
