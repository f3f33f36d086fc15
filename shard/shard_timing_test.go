package shard

import (
	"io"
	"testing"

	"facet/engine"
	"facet/internal/codec"
)

const timingRows = 50_000

// timed is a shard with timingRows events of 192 numbers.
func timed(b *testing.B) *Shard {
	b.Helper()
	s, key := newTestShard(b, timingRows+1), testKey(b, 1)
	template := make(engine.Template, 192)
	template[0] = 1
	for n := range timingRows {
		e := newEvent(key, 0, template)
		e.Subject.UUID = [16]byte{9, byte(n >> 16), byte(n >> 8), byte(n)}
		e.Sealed = SealFace(key, FaceRef{e.Gallery, e.Generation, e.Subject, e.Event, 0}, engine.Face{Template: template})
		put(b, s, e)
	}
	return s
}

func BenchmarkOpen50000(b *testing.B) {
	s, key := timed(b), testKey(b, 1)
	sl := s.state.slices[testGallery]
	for b.Loop() {
		for row := range sl.templates.rows {
			sl.templates.rows[row].open = false
			if err := sl.openRow(key, row); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkSearch50000(b *testing.B) {
	s, key := timed(b), testKey(b, 1)
	probe := make(engine.Template, 192)
	probe[1] = 1
	b.SetBytes(timingRows * 192 * 4)
	for b.Loop() {
		if hits, err := search(s, key, probe); err != nil || len(hits) > 0 {
			b.Fatal(hits, err)
		}
	}
}

func BenchmarkFreeze50000(b *testing.B) {
	s := timed(b)
	for b.Loop() {
		s.Freeze()
	}
}

func BenchmarkFreezeAndWrite50000(b *testing.B) {
	s := timed(b)
	for b.Loop() {
		w := codec.NewWriter(io.Discard, codec.Magic{}, 1)
		s.Freeze().Write(w)
		if _, err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(w.Bytes())
	}
}

// BenchmarkPage reads the first and the thousandth page of a million entries; their
// cost must be alike.
func BenchmarkPage(b *testing.B) {
	const million, page = 1_000_000, 1000
	s := newTestShard(b, million)
	for n := range million {
		e := Event{Gallery: testGallery, Generation: 1, Time: int64(n)}
		e.Subject.UUID = [16]byte{9, byte(n >> 16), byte(n >> 8), byte(n)}
		put(b, s, e)
	}
	for name, at := range map[string]int{"0": 0, "999": million - page} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if entries, _ := s.List(testGallery, at, page, Ascending); len(entries) != page {
					b.Fatal(len(entries))
				}
				s.Before(testGallery, int64(at))
			}
		})
	}
}
