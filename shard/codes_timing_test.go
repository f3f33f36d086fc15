package shard

import (
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/must"
	"facet/shard/kernel"
	"facet/shard/segment"
)

var codedEvents = flag.Int("codedn", 100_000, "events of BenchmarkStart")

// BenchmarkStart times the parts of a start, on all processors: the records, and the templates by their
// codes on disk, beside decrypting and encoding them.
func BenchmarkStart(b *testing.B) {
	const dim = 192
	store, err := segment.Open(b.TempDir(), segment.Options{})
	must.Do(b, err)
	n := *codedEvents
	s, key := newTestShard(b, uint32(n)), testKey(b, 1)
	s.Keep(store)
	defer s.Close()
	r := rand.New(rand.NewPCG(3, 3))
	for i := range n {
		e := Event{Gallery: testGallery, Generation: 1, Time: int64(i)}
		binary.BigEndian.PutUint64(e.Event.UUID[8:], uint64(i))
		binary.BigEndian.PutUint64(e.Subject.UUID[:], r.Uint64())
		e.Sealed = SealFace(key, FaceRef{testGallery, 1, e.Subject, e.Event, 0}, engine.Face{Template: randomTemplate(r, dim)})
		put(b, s, e)
	}
	snapshot := frozenInto(b, s, segment.Share)
	warm := func() time.Duration {
		begin := time.Now()
		must.Do(b, s.Warm(b.Context(), testGallery, 1, key))
		return time.Since(begin)
	}
	restart := func() (records time.Duration) {
		begin := time.Now()
		l, err := loaded(snapshot, store)
		must.Do(b, err)
		s.Replace(l)
		l.Close()
		return time.Since(begin)
	}
	warm()
	restart()
	encode := warm()
	begin := time.Now()
	rows := saveAll(b, s)
	saved := time.Since(begin)
	var records, codes time.Duration
	for b.Loop() {
		records += restart()
		codes += warm()
	}
	per := func(d time.Duration, name string) { b.ReportMetric(float64(d.Nanoseconds())/float64(n), name) }
	per(records/time.Duration(b.N), "ns/record")
	per(codes/time.Duration(b.N), "ns/coded")
	per(encode, "ns/encoded")
	per(saved, "ns/saved")
	if rows < n-kernel.BlockRows*64 {
		b.Errorf("%d of %d rows have codes", rows, n)
	}
}
