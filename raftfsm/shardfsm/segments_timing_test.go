package shardfsm

import (
	"encoding/binary"
	"io/fs"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/shard"
	"facet/shard/kernel"
	"facet/shard/seal"
)

// heap returns the live bytes of the Go heap.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// sizes returns the sizes of the files in a folder.
func sizes(b *testing.B, dir string) map[string]int64 {
	b.Helper()
	list := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, statErr := d.Info()
			if err = statErr; err == nil {
				list[path] = info.Size()
			}
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return list
}

// written returns the size of the files of now that before does not have.
func written(before, now map[string]int64) (n int64) {
	for path, size := range now {
		if _, old := before[path]; !old {
			n += size
		}
	}
	return n
}

// fill enrols events with faces of 192 numbers, without the log.
func fill(b *testing.B, s *shard.Shard, key *seal.Key, from, to int) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 1))
	for i := from; i < to; i++ {
		var u id.UUID
		binary.BigEndian.PutUint64(u[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(u[8:], uint64(i))
		e := shard.Event{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Event: id.Event{UUID: u}, Time: testTime, Tags: []uint32{1}}
		face := engine.Face{Template: make(engine.Template, 192)}
		var squares float64
		for j := range face.Template {
			face.Template[j] = float32(random.NormFloat64())
			squares += float64(face.Template[j]) * float64(face.Template[j])
		}
		for j := range face.Template { // unit length, without which there are no codes
			face.Template[j] /= float32(math.Sqrt(squares))
		}
		e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: testGallery, Generation: 1, Subject: e.Subject, Event: e.Event}, face)
		if err := s.Put(e, shard.OldestDeleted); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMillionEvents reports the cost of the first snapshot of a million events, and of
// another after a hundredth has changed. It reports how long a restart takes until the state
// is loaded (ready-s) and until all templates are decrypted (open-s), and the Go heap of one
// event.
func BenchmarkMillionEvents(b *testing.B) {
	const million = 1_000_000
	key, err := seal.NewKey(make([]byte, seal.KeyBytes))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		dir, arena := b.TempDir(), kernel.NewArena(0)
		before := heap()
		m := New(newTable(b), arena)
		g := openGroup(b, dir, m, nil)
		settle(b, g)
		if _, err := g.Propose(b.Context(), GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: million})); err != nil {
			b.Fatal(err)
		}
		fill(b, m.Shard(), key, 0, million)
		b.ReportMetric((heap()-before)/million, "memory-heap-B")
		snapshot := func(name string) {
			old, begin := sizes(b, dir), time.Now()
			if err := g.Snapshot(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(begin).Seconds(), name+"-s")
			b.ReportMetric(float64(written(old, sizes(b, dir)))/1e6, name+"-MB")
		}
		snapshot("full")
		b.ReportMetric((heap()-before)/million, "stored-heap-B")
		for i := range million / 200 { // spread over all
			var u id.UUID
			binary.BigEndian.PutUint64(u[:], uint64(i*200)*0x9e3779b97f4a7c15)
			binary.BigEndian.PutUint64(u[8:], uint64(i*200))
			err := m.Shard().Erase(shard.Erasure{Gallery: testGallery, Generation: 1, Subject: id.Subject{UUID: u}, Time: testTime})
			if err != nil {
				b.Fatal(err)
			}
		}
		fill(b, m.Shard(), key, million, million+million/200)
		snapshot("changed")
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		want := m.Shard().Slots().Stats()
		m = New(newTable(b), arena)
		runtime.GC()
		begin := time.Now()
		g = openGroup(b, dir, m, nil)
		settle(b, g)
		b.ReportMetric(time.Since(begin).Seconds(), "ready-s")
		if got := m.Shard().Slots().Stats(); got != want {
			b.Fatalf("after a restart %+v, before %+v", got, want)
		}
		begin = time.Now()
		if err := m.Shard().Warm(b.Context(), testGallery, 1, key); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(time.Since(begin).Seconds(), "open-s")
		if err := g.Close(); err != nil {
			b.Fatal(err)
		}
		m.Shard().Close()
	}
}
