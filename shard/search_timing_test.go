package shard

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/kernel"
)

const (
	timingDim = 192
	million   = 1_000_000
)

// direction is a random unit vector.
func direction(r *rand.Rand) engine.Template {
	v := make(engine.Template, timingDim)
	var norm float64
	for i := range v {
		v[i] = float32(r.NormFloat64())
		norm += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(norm))
	}
	return v
}

// tagsOf are tags that 1, 10 and 50 of 100 events have.
func tagsOf(n int) (tags []uint32) {
	for tag, share := range map[uint32]int{1: 1, 10: 10, 50: 50} {
		if n*7919%100 < share {
			tags = append(tags, tag)
		}
	}
	return tags
}

func eventOf(g id.Gallery, n int) Event {
	e := Event{Gallery: g, Generation: 1, Time: int64(n), Tags: tagsOf(n)}
	e.Subject.UUID = [16]byte{9, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	e.Event.UUID = [16]byte{8, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return e
}

// fill puts n events into a gallery.
func fill(b testing.TB, s *Shard, g id.Gallery, n int) {
	b.Helper()
	must.Do(b, s.Grant(Grant{g, 1, uint32(2 * n)}))
	key, sealed := testKey(b, 1), make([][]byte, n)
	var work sync.WaitGroup
	for p := range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(p), uint64(n)))
			for i := p; i < n; i += runtime.GOMAXPROCS(0) {
				e := eventOf(g, i)
				sealed[i] = SealFace(key, FaceRef{g, 1, e.Subject, e.Event, 0}, engine.Face{Template: direction(r)})
			}
		})
	}
	work.Wait()
	for i := range n {
		e := eventOf(g, i)
		e.Sealed = sealed[i]
		put(b, s, e)
	}
}

// large is a shard with a million events, made once.
var large = sync.OnceValue(emptyShard)

func emptyShard() *Shard {
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: .4, Score: 7000}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	if err != nil {
		panic(err)
	}
	return New(table, kernel.NewArena(0))
}

func filled(b *testing.B) (s *Shard, queue *kernel.Queue) {
	b.Helper()
	s = large()
	if s.Usage(testGallery).Active == 0 {
		fill(b, s, testGallery, million)
		must.Do(b, s.open(b.Context(), s.state.slices[testGallery], testKey(b, 1)))
	}
	return s, s.state.slices[testGallery].templates.queue
}

func warmQuery() Query {
	return Query{Probe: direction(rand.New(rand.NewPCG(1, 1))), Threshold: 7000, Limit: 10}
}

// each times f and gives the median in seconds.
func each(b *testing.B, f func()) float64 {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		f()
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	return times[len(times)/2].Seconds()
}

// BenchmarkSearchMillion compares the search of a shard with that of the kernel alone,
// in turn with it.
func BenchmarkSearchMillion(b *testing.B) {
	s, queue := filled(b)
	key, q := testKey(b, 1), warmQuery()
	for name, threshold := range map[string]int{"threshold": 7000, "top10": 0} {
		q.Threshold = threshold
		b.Run(name, func(b *testing.B) {
			var alone, whole []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := queue.Search(b.Context(), q); err != nil {
					b.Fatal(err)
				}
				middle := time.Now()
				if _, err := s.Search(b.Context(), testGallery, 1, key, q); err != nil {
					b.Fatal(err)
				}
				alone, whole = append(alone, middle.Sub(begin)), append(whole, time.Since(middle))
			}
			slices.Sort(alone)
			slices.Sort(whole)
			kernel, shard := alone[len(alone)/2].Seconds(), whole[len(whole)/2].Seconds()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(kernel*1e3, "kernel-ms")
			b.ReportMetric(shard*1e3, "shard-ms")
			b.ReportMetric(shard/kernel, "x-kernel")
		})
	}
}

// BenchmarkSearchTagged compares searches with a tag that 1, 10 and 50 % of a million
// events have with a search of all.
func BenchmarkSearchTagged(b *testing.B) {
	s, _ := filled(b)
	key := testKey(b, 1)
	for name, threshold := range map[string]int{"threshold": 7000, "top10": 0} {
		q := warmQuery()
		q.Threshold = threshold
		search := func(b *testing.B, tags ...uint32) float64 {
			q.Tags = tags
			return each(b, func() {
				if _, err := s.Search(b.Context(), testGallery, 1, key, q); err != nil {
					b.Fatal(err)
				}
			})
		}
		var all float64
		b.Run(name+"/all", func(b *testing.B) { all = search(b) })
		for _, percent := range []uint32{1, 10, 50} {
			b.Run(name+"/"+string('0'+rune(percent/10))+string('0'+rune(percent%10))+"%", func(b *testing.B) {
				b.ReportMetric(search(b, percent)/all, "x-all")
			})
		}
	}
}

// keepSearching searches on n goroutines until stop is called, which counts the searches.
func keepSearching(b *testing.B, n int, search func(context.Context) error) (stop func() int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	var count atomic.Int64
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := search(ctx); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
				count.Add(1)
			}
		})
	}
	return func() int64 {
		cancel()
		wg.Wait()
		return count.Load()
	}
}

// BenchmarkSmallGalleryBesideLarge searches a gallery of 1,000 alone and while all
// processors search one of a million.
func BenchmarkSmallGalleryBesideLarge(b *testing.B) {
	s, _ := filled(b)
	key, q, small := testKey(b, 1), warmQuery(), id.Gallery{UUID: id.UUID{77}}
	if s.Usage(small).Active == 0 {
		fill(b, s, small, 1000)
	}
	var alone float64
	for i, name := range []string{"alone", "beside"} {
		b.Run(name, func(b *testing.B) {
			stop := keepSearching(b, i*runtime.GOMAXPROCS(0), func(ctx context.Context) error {
				_, err := s.Search(ctx, testGallery, 1, key, q)
				return err
			})
			var times []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := s.Search(b.Context(), small, 1, key, q); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(begin))
				time.Sleep(200 * time.Microsecond) // as one who asks, not one who runs
			}
			stop()
			slices.Sort(times)
			p50 := times[len(times)/2].Seconds()
			b.ReportMetric(p50*1e6, "p50-µs")
			b.ReportMetric(times[len(times)*99/100].Seconds()*1e6, "p99-µs")
			if i == 0 {
				alone = p50
			}
			b.ReportMetric(p50/alone, "x-alone")
		})
	}
}

// BenchmarkThousandGalleries searches galleries of 100, in turn: one that is alone on
// its shard, one of 1,000 such, and one of 100,000, as many events as those have.
func BenchmarkThousandGalleries(b *testing.B) {
	const galleries, size = 1000, 100
	key, q := testKey(b, 1), warmQuery()
	numbered := func(n int) id.Gallery { return id.Gallery{UUID: id.UUID{66, byte(n >> 8), byte(n)}} }
	alone, among, one := emptyShard(), emptyShard(), emptyShard()
	fill(b, alone, numbered(0), size)
	fill(b, one, numbered(0), galleries*size)
	for n := range galleries {
		fill(b, among, numbered(n), size)
	}
	var times [3][]time.Duration
	search := func(i, n int, s *Shard) {
		begin := time.Now()
		if _, err := s.Search(b.Context(), numbered(n), 1, key, q); err != nil {
			b.Fatal(err)
		}
		times[i] = append(times[i], time.Since(begin))
	}
	for n := range galleries { // templates are opened at the first search
		search(0, 0, alone)
		search(1, n, among)
		search(2, 0, one)
	}
	times = [3][]time.Duration{}
	for n := 0; b.Loop(); n++ {
		search(0, 0, alone)
		search(1, n%galleries, among)
		search(2, 0, one)
	}
	var p50 [3]float64
	for i := range times {
		slices.Sort(times[i])
		p50[i] = times[i][len(times[i])/2].Seconds() * 1e6
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50[0], "alone-µs")
	b.ReportMetric(p50[1], "among-µs")
	b.ReportMetric(p50[2], "one-of-100000-µs")
}
