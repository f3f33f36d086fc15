package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"facet/shard/scan"
)

// BenchmarkCoverage times a search with a coverage, whose rows are counted, beside one without, in turns.
func BenchmarkCoverage(b *testing.B) {
	const dim, n = 128, 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	arena := NewArena(0)
	m, table := filled(b, r, arena, dim, n), newTable(b)
	for _, cos := range []float32{.6, .5, 0} {
		b.Run(fmt.Sprintf("%.1f", cos), func(b *testing.B) {
			var took [2][]time.Duration
			for b.Loop() {
				q := scan.Query{Probe: unit(r, dim), Limit: 10, Threshold: table.Score(cos)}
				for _, i := range r.Perm(len(took)) {
					if q.Coverage = nil; i == 1 {
						q.Coverage = new(scan.Coverage)
					}
					begin := time.Now()
					if _, err := m.Search(table, q); err != nil {
						b.Fatal(err)
					}
					if i == 1 {
						if m.Count(q.Coverage); q.Coverage.Searched != n {
							b.Fatalf("%d of %d rows", q.Coverage.Searched, n)
						}
					}
					took[i] = append(took[i], time.Since(begin))
				}
			}
			for i := range took {
				slices.Sort(took[i])
			}
			plain, counted := took[0][0], took[1][0] // the least: others use the machine, too
			b.ReportMetric(float64(plain.Microseconds()), "µs-plain")
			b.ReportMetric(float64(counted)/float64(plain), "×-plain")
		})
	}
	m.Free()
	_ = arena.Close()
}
