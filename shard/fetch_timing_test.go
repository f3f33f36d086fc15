package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"facet/engine"
	"facet/internal/id"
	"facet/shard/kernel"
	"facet/shard/record"
	"facet/shard/segment"
)

// BenchmarkFetch reads and decrypts random rows of 50,000 events, some at a time.
func BenchmarkFetch(b *testing.B) {
	const dim, n = 192, 50_000
	store, err := segment.Open(b.TempDir(), segment.Options{Damaged: func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	s, key := newTestShard(b, n), testKey(b, 1)
	s.arena = kernel.NewArena(0)
	s.Keep(store)
	r := rand.New(rand.NewPCG(1, 1))
	var rows []record.Row
	for i := range n {
		u := id.UUID{byte(i >> 16), byte(i >> 8), byte(i), 1}
		e := Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: int64(i)}
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: randomTemplate(r, dim)})
		put(b, s, e)
	}
	frozenInto(b, s, segment.Share)
	sl, done, err := s.enter(testGallery, 1)
	if err != nil {
		b.Fatal(err)
	}
	defer done()
	sl.source.store = &s.sealed
	sl.source.key.Store(key)
	for e := range sl.entries.All(0) {
		rows = append(rows, e)
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	for _, some := range []int{1, 32, 512} {
		b.Run(fmt.Sprint(some), func(b *testing.B) {
			at := 0
			b.ReportAllocs()
			for b.Loop() {
				if at+some > len(rows) {
					at = 0
				}
				if err := sl.source.Fetch(b.Context(), rows[at:at+some], func(int, []float32) {}); err != nil {
					b.Fatal(err)
				}
				at += some
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*some), "ns/row")
		})
	}
}
