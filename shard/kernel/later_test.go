package kernel

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"facet/engine/score"
	"facet/shard/scan"
)

// at gives a unit vector whose cosine with v is cos.
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

func TestRowsThatAreNearlyGoodEnoughArePutOffAndNoneIsLost(t *testing.T) {
	t.Parallel()
	const dim, many = 32, laterMax + 12_000
	r := rand.New(rand.NewPCG(1, 12))
	w := newTwin(t, dim)
	probe := unit(r, dim)
	for i := range 200 {
		w.add(t, ownerOf(r, i), at(r, probe, .9))
	}
	for i := range many {
		v := at(r, probe, .88)
		if i%5000 == 4999 {
			v = at(r, probe, .95) // the limit rises when others are put off already
		}
		w.add(t, ownerOf(r, 1000+i), v)
	}
	q := scan.Query{Probe: probe, Limit: 12}
	want := scan.TopK(maps.Values(w.rows), w.table, q)
	for _, k := range kernels() {
		if k.groups == nil {
			continue
		}
		inner, asked := k.rows, 0
		k.rows = func(r *rows) { asked += len(r.list); inner(r) }
		s, err := w.m.newSearch(w.table, &request{query: q}, &k)
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		s.stop = func() error {
			if s.put != nil {
				most = max(most, len(s.put[1].rows))
			}
			return nil
		}
		if got := run(t, w.m, s); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", k.name, got, want)
		}
		if most < laterMax/2 || most > laterMax+pieceSlots || asked > many/2 {
			t.Errorf("%s: %d rows were put off at most, %d looked at", k.name, most, asked)
		}
	}
}
