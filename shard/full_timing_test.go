package shard

import (
	"context"
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/seal"
	"facet/shard/segment"
)

var fullEvents = flag.Int("events", 100_000, "events of BenchmarkFull; ten million take about 15 GB of memory, and 10 GB of disk")

const (
	// fullBatch is how many events come between two snapshots.
	fullBatch = 500_000
	// nodeBudget is what a node of 24 GiB lets events take: 75 %.
	nodeBudget = 24 << 30 / 100 * 75
)

// heap returns the live bytes of the Go heap.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// resident reads a line of the system's account of this process, in bytes; 0 where the
// system has none.
func resident(b *testing.B, line string) float64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			must.Do(b, err)
			return n * 1024
		}
	}
	b.Fatalf("no %s", line)
	return 0
}

// fillFull enrols n events with faces of 192 numbers in a shard with a store, with a
// snapshot now and then.
func fillFull(b *testing.B, s *Shard, key *seal.Key, n int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	faces := make([]engine.Face, 10_000)
	for i := range faces {
		faces[i].Template = make(engine.Template, 192)
		var squares float64
		for j := range faces[i].Template {
			x := random.NormFloat64()
			faces[i].Template[j] = float32(x)
			squares += x * x
		}
		for j := range faces[i].Template {
			faces[i].Template[j] /= float32(math.Sqrt(squares))
		}
	}
	for i := range n {
		var u id.UUID
		binary.BigEndian.PutUint64(u[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(u[8:], uint64(i))
		e := Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: 1, Tags: []uint32{1}}
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, faces[i%len(faces)])
		must.Do(b, s.Put(e, FreeSlots))
		if (i+1)%fullBatch == 0 || i == n-1 {
			frozenInto(b, s, segment.Share)
			must.Do(b, s.sealed.store.Collect())
		}
	}
}

// BenchmarkFull holds as many events as -events says, stored and opened, and reports
// what one takes: of memory that is resident, of the arena, of the Go heap, and by the
// estimate by which a node refuses more; and how many a node of 24 GiB takes by that
// before it does.
func BenchmarkFull(b *testing.B) {
	n := float64(*fullEvents)
	for b.Loop() {
		base, before := heap(), resident(b, "VmRSS")
		store, err := segment.Open(b.TempDir(), segment.Options{Damaged: func(err error) { b.Error(err) }})
		must.Do(b, err)
		s, key := newTestShard(b, uint32(*fullEvents)), testKey(b, 1)
		s.arena = kernel.NewArena(0)
		s.Keep(store)
		fillFull(b, s, key, *fullEvents)
		estimate := float64(s.Memory())
		begin := time.Now()
		must.Do(b, s.Warm(b.Context(), testGallery, 1, key))
		b.ReportMetric(time.Since(begin).Seconds()*1e6/n, "open-µs")
		probe := axis(3)
		probe = append(probe, make(engine.Template, 192-len(probe))...)
		begin = time.Now()
		if _, err := s.Search(context.Background(), testGallery, 1, key, Query{Probe: probe, Limit: 10}); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds()*1e3, "search-ms")
		b.ReportMetric((heap()-base)/n, "heap-B")
		b.ReportMetric(float64(s.arena.Used())/n, "arena-B")
		b.ReportMetric((resident(b, "VmRSS")-before)/n, "resident-B")
		b.ReportMetric((resident(b, "VmHWM")-before)/n, "peak-B")
		b.ReportMetric(float64(s.Memory())/n, "estimate-B")
		b.ReportMetric(estimate/n, "estimate-closed-B")
		b.ReportMetric(nodeBudget/(float64(s.Memory())/n)/1e6, "M-refused-at-24GiB")
		s.Close()
		must.Do(b, s.arena.Close())
	}
}
