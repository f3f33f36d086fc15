package shard

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
)

// meansSubjects subjects with meansPhotos events each have as many rows as plainRows events.
const (
	meansSubjects = 100_000
	meansPhotos   = 3
	plainRows     = meansSubjects * (meansPhotos + 1)
)

// BenchmarkSearchMeans compares a search with means with a search of equally many rows of events, in
// turn with it. The goal is 1.1.
func BenchmarkSearchMeans(b *testing.B) {
	s, key, plain := emptyShard(), testKey(b, 1), id.Gallery{UUID: id.UUID{9}}
	fill(b, s, plain, plainRows)
	must.Do(b, s.Grant(Grant{testGallery, 1, meansSubjects * meansPhotos}))
	r := rand.New(rand.NewPCG(3, 3))
	for i := range meansSubjects * meansPhotos {
		e := eventOf(testGallery, i)
		e.Subject = eventOf(testGallery, i/meansPhotos).Subject
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: direction(r)})
		var err error
		if i%meansPhotos == 0 {
			err = s.Put(e, FreeSlots)
		} else {
			err = s.Add(e, FreeSlots)
		}
		must.Do(b, err)
	}
	s.Average(func(g id.Gallery) bool { return g == testGallery })
	for _, g := range []id.Gallery{plain, testGallery} {
		must.Do(b, s.Warm(b.Context(), g, 1, key))
	}
	for name, threshold := range map[string]int{"threshold": 7000, "top10": 0} {
		b.Run(name, func(b *testing.B) {
			var with, without []time.Duration
			probes := rand.New(rand.NewPCG(4, 4))
			for b.Loop() {
				q := Query{Probe: direction(probes), Threshold: threshold, Limit: 10}
				search := func(g id.Gallery) time.Duration {
					begin := time.Now()
					if _, err := s.Search(b.Context(), g, 1, key, q); err != nil {
						b.Fatal(err)
					}
					return time.Since(begin)
				}
				without = append(without, search(plain))
				q.Means = true
				with = append(with, search(testGallery))
			}
			slices.Sort(with)
			slices.Sort(without)
			own, other := with[len(with)/2].Seconds(), without[len(without)/2].Seconds()
			b.ReportMetric(own*1e3, "ms/means")
			b.ReportMetric(other*1e3, "ms/rows")
			b.ReportMetric(own/other, "ratio")
		})
	}
	s.Close()
}

// BenchmarkMeanBytes reports the Go heap of a subject's own template.
func BenchmarkMeanBytes(b *testing.B) {
	s, key := emptyShard(), testKey(b, 1)
	s.arena = kernel.NewArena(0)
	const n = 100_000
	must.Do(b, s.Grant(Grant{testGallery, 1, 2 * n}))
	template := direction(rand.New(rand.NewPCG(1, 1)))
	for i := range n {
		e := eventOf(testGallery, i)
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: template})
		put(b, s, e)
		e.Event = eventOf(testGallery, n+i).Event
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: template})
		add(b, s, e)
	}
	heap := func() float64 {
		must.Do(b, s.Warm(b.Context(), testGallery, 1, key))
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	s.Average(func(id.Gallery) bool { return true })
	m := s.state.slices[testGallery].means.Load()
	for b.Loop() {
		b.ReportMetric((heap()-before)/n, "bytes/mean")
	}
	b.ReportMetric(float64(m.bytes())/n, "bytes/mean-in-matrix")
	s.Close()
}
