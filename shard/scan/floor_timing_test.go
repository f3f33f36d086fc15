package scan_test

import (
	"math/rand/v2"
	"testing"

	"facet/shard/scan"
)

// BenchmarkFloor is a search for the 50 best of 16 slices, each of which raises the floor 32 times.
func BenchmarkFloor(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	var scores [16][32][]int
	for s := range scores {
		for i := range scores[s] {
			for range 50 {
				scores[s][i] = append(scores[s][i], 3000+50*i+r.IntN(1000))
			}
		}
	}
	for b.Loop() {
		f := scan.NewFloor(50)
		for i := range 32 {
			for s := range scores {
				f.Raise(s, scores[s][i])
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(16*32), "ns/raise")
}
