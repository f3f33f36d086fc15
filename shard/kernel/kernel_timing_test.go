package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/scan"
)

// filled returns a matrix of n random templates.
func filled(b *testing.B, r *rand.Rand, arena *Arena, dim, n int) *Matrix {
	b.Helper()
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
	return m
}

// BenchmarkBatch times 32 searches that share a pass, beside the same one after the other.
func BenchmarkBatch(b *testing.B) {
	for _, dim := range []int{128, 192, 512} {
		n := 100_000_000 / dim
		r := rand.New(rand.NewPCG(1, 2))
		arena := NewArena(0)
		m, table := filled(b, r, arena, dim, n), newTable(b)
		for _, k := range kernels() {
			if k.lanes == nil || k.name == portable.name {
				continue
			}
			alone := k
			alone.lanes = nil
			for _, cos := range []float32{.6, 0} {
				requests := make([]request, batchMax)
				for i := range requests {
					requests[i].query = scan.Query{Probe: unit(r, dim), Limit: 10, Threshold: table.Score(cos)}
				}
				b.Run(fmt.Sprintf("%d/%s/%.1f", dim, k.name, cos), func(b *testing.B) {
					var each [2]time.Duration
					for b.Loop() {
						for i, k := range []*kernel{&k, &alone} {
							begin := time.Now()
							if _, err := m.searchAll(table, requests, k); err != nil {
								b.Fatal(err)
							}
							each[i] += time.Since(begin)
						}
					}
					searches := float64(b.N * n * batchMax)
					b.ReportMetric(float64(each[0].Nanoseconds())/searches, "ns/row")
					b.ReportMetric(float64(each[1])/float64(each[0]), "×-alone")
				})
			}
		}
		m.Free()
		_ = arena.Close()
	}
}

func BenchmarkSearch(b *testing.B) {
	for _, dim := range []int{128, 192, 512} {
		n := 100_000_000 / dim
		r := rand.New(rand.NewPCG(1, 2))
		arena := NewArena(0)
		m := filled(b, r, arena, dim, n)
		table := newTable(b)
		for _, k := range kernels()[:len(kernels())-1] {
			for _, cos := range []float32{.6, .5, .4, 0} {
				q := request{query: scan.Query{Probe: unit(r, dim), Limit: 10, Threshold: table.Score(cos)}}
				b.Run(fmt.Sprintf("%d/%s/%.1f", dim, k.name, cos), func(b *testing.B) {
					for b.Loop() {
						s, err := m.newSearch(table, &q, &k)
						must.Do(b, err)
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
