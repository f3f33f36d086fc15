package shard

import (
	"io"
	"testing"

	"facet/internal/codec"
)

const timingRows = 50_000

// timed is a shard with timingRows events of 192 numbers.
func timed(b *testing.B) *Shard {
	b.Helper()
	s := newTestShard(b, timingRows+1)
	fill(b, s, testGallery, timingRows)
	return s
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
		if err := s.Freeze().Write(w); err != nil {
			b.Fatal(err)
		}
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
				if entries, _ := s.Listing().List(testGallery, at, page, Ascending); len(entries) != page {
					b.Fatal(len(entries))
				}
				s.Listing().Before(testGallery, int64(at))
			}
		})
	}
}
