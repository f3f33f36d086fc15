package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"facet/internal/id"
	"facet/shard/scan"
)

func BenchmarkSearch(b *testing.B) {
	for _, dim := range []int{128, 192, 512} {
		n := 100_000_000 / dim
		r := rand.New(rand.NewPCG(1, 2))
		arena := NewArena(0)
		owners := new(OwnerList)
		m, _ := New(arena, dim, owners)
		base := make([][]float32, 1000)
		for i := range base {
			base[i] = unit(r, dim)
		}
		v := make([]float32, dim)
		for i := range n {
			x, y := base[r.IntN(1000)], base[r.IntN(1000)]
			k := r.IntN(dim)
			for j := range v {
				v[j] = x[j] + y[(j+k)%dim]
			}
			o := &Owner{Event: id.Event{UUID: id.UUID{byte(i), byte(i >> 8), byte(i >> 16)}}}
			if _, err := m.Add(owners.Add(o, nil), normalise(v)); err != nil {
				b.Fatal(err)
			}
		}
		table := newTable(b)
		for _, k := range kernels()[:len(kernels())-1] {
			for _, cos := range []float32{.6, .5, .4, 0} {
				q := request{query: scan.Query{Probe: unit(r, dim), Limit: 10, Threshold: table.Score(cos)}}
				b.Run(fmt.Sprintf("%d/%s/%.1f", dim, k.name, cos), func(b *testing.B) {
					for b.Loop() {
						s, err := m.newSearch(table, &q, &k)
						if err != nil {
							b.Fatal(err)
						}
						m.pass([]*search{s}, nil)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
				})
			}
		}
		m.Free()
		_ = arena.Close()
	}
}
