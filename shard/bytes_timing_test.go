package shard

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"facet/shard/kernel"
)

// heap returns the live bytes of the Go heap.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkBytes reports what an event of one subject takes in memory, by part, and
// how long a template takes to be opened on one core.
func BenchmarkBytes(b *testing.B) {
	for _, n := range []int{100_000, million} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				report := func(before float64, name string) {
					b.ReportMetric((heap()-before)/float64(n), name)
				}
				before := heap()
				s := newTestShard(b, 1)
				s.arena = kernel.NewArena(0)
				fill(b, s, testGallery, n)
				sealed := float64(s.Slots().Stats().SealedBytes)
				report(before+sealed, "heap-but-sealed-B")
				b.ReportMetric(sealed/float64(n), "sealed-B")
				estimate := float64(s.Slots().Memory())
				begin := time.Now()
				if err := s.Warm(b.Context(), testGallery, 1, testKey(b, 1)); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(time.Since(begin).Seconds()*1e6/float64(n), "open-µs")
				report(before+sealed, "heap-opened-B")
				b.ReportMetric(float64(s.arena.Used())/float64(n), "arena-B")
				b.ReportMetric(float64(s.Slots().Memory())/estimate, "x-estimate")
				s.Close()
				if err := s.arena.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
