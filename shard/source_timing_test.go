package shard

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/segment"
)

var coldEvents = flag.Int("cold", 200_000, "events of BenchmarkColdRows")

// BenchmarkColdRows searches a slice whose exact rows are all on disk, beside the same one with all
// in memory: alone, and 32 at once. Half of the probes resemble an event.
func BenchmarkColdRows(b *testing.B) {
	const dim, searches, together = 192, 64, 32
	n := *coldEvents
	store, err := segment.Open(b.TempDir(), segment.Options{Damaged: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	s, key := newTestShard(b, uint32(n)), testKey(b, 1)
	s.arena = kernel.NewArena(0)
	s.Keep(store)
	r := rand.New(rand.NewPCG(1, 1))
	var probes []engine.Template
	for i := range n {
		template := randomTemplate(r, dim)
		u := id.UUID{byte(i >> 16), byte(i >> 8), byte(i), 1}
		e := Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: int64(i)}
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: template})
		put(b, s, e)
		if i%(n/searches) == 0 {
			probe := randomTemplate(r, dim)
			if len(probes)%2 == 0 {
				for j := range probe {
					probe[j] = .8*template[j] + .6*probe[j]
				}
			}
			probes = append(probes, probe)
		}
		if i%fullBatch == fullBatch-1 || i == n-1 {
			frozenInto(b, s, segment.Share)
		}
	}
	if err := s.Warm(b.Context(), testGallery, 1, key); err != nil {
		b.Fatal(err)
	}
	for _, q := range []Query{{Threshold: s.table.Score(.6), Limit: 10}, {Limit: 10}, {Limit: 50}} {
		b.Run(fmt.Sprintf("%d best from %d", q.Limit, q.Threshold), func(b *testing.B) {
			for b.Loop() {
				warm, warmHits := timeSearches(b, s, q, probes, 1)
				warmAll, _ := timeSearches(b, s, q, probes, together)
				chilled(b, s)
				cold, coldHits := timeSearches(b, s, q, probes, 1)
				coldAll, _ := timeSearches(b, s, q, probes, together)
				for i := range warmHits {
					if !slices.Equal(warmHits[i], coldHits[i]) {
						b.Fatalf("search %d differs", i)
					}
				}
				for ExactOf(s).Cold() > 0 {
					if _, err := ExactOf(s).Thaw(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(warm.Seconds()*1e3, "warm-ms")
				b.ReportMetric(cold.Seconds()*1e3, "cold-ms")
				b.ReportMetric(float64(cold)/float64(warm), "x-warm")
				b.ReportMetric(float64(coldAll)/float64(warmAll), "x-warm-32")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
	s.Close()
	if err := s.arena.Close(); err != nil {
		b.Fatal(err)
	}
}

// timeSearches returns the time of a search, and the hits of all.
func timeSearches(b *testing.B, s *Shard, q Query, probes []engine.Template, together int) (time.Duration, [][]Hit) {
	b.Helper()
	all := make([][]Hit, len(probes))
	begin := time.Now()
	var work sync.WaitGroup
	for w := range together {
		work.Go(func() {
			for i := w; i < len(probes); i += together {
				q := q
				q.Probe = probes[i]
				hits, err := s.Search(b.Context(), testGallery, 1, testKey(b, 1), q)
				if err != nil {
					b.Error(err)
				}
				all[i] = hits
			}
		})
	}
	work.Wait()
	return time.Since(begin) / time.Duration(len(probes)), all
}
