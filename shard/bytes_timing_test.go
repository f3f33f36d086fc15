package shard

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tidwall/btree"

	"facet/internal/id"
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
				entries := make([]*entry, n)
				for i := range entries {
					entries[i] = new(entry)
				}
				report(before+float64(8*n), "entry-B")
				before = heap()
				tree := new(btree.Map[uint64, *entry])
				for i, e := range entries {
					tree.Load(uint64(i), e)
				}
				report(before, "tree-B")
				before = heap()
				subjects := make(map[id.Subject]*entry)
				for i, e := range entries {
					subjects[eventOf(testGallery, i).Subject] = e
				}
				report(before, "subjects-B")
				runtime.KeepAlive(tree)
				runtime.KeepAlive(subjects)
				runtime.KeepAlive(entries)
				tree = nil

				before = heap()
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
