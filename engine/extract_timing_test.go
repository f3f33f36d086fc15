package engine_test

import (
	"context"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
)

// BenchmarkExtract prints the time of an extraction. "bench engine" in scripts compares it with the
// time of the networks and the decoder alone.
func BenchmarkExtract(b *testing.B) {
	e := enginetest.New(b, engine.Config{Workers: 1})
	all := func(data []byte) ([]engine.Face, error) { return e.Extract(context.Background(), data) }
	large := func(data []byte) ([]engine.Face, error) { return e.ExtractLarge(context.Background(), data, .35) }
	for _, c := range []struct {
		name, photo string
		extract     func([]byte) ([]engine.Face, error)
	}{
		{"one person/512 x 512 PNG", "scikit-image/astronaut.png", large},
		{"one person/910 x 1137 JPEG", "face_recognition/obama.jpg", large},
		{"all faces/910 x 1137 JPEG", "face_recognition/obama.jpg", all},
		{"all faces/group of 5, 1920 x 1398 JPEG", "face-api/sample5.jpg", all},
	} {
		data := enginetest.Photo(b, c.photo)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.extract(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExtractAtOnce has as many requests as cores.
func BenchmarkExtractAtOnce(b *testing.B) {
	e := enginetest.New(b, engine.Config{})
	data := enginetest.Photo(b, "face_recognition/obama.jpg")
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := e.ExtractLarge(context.Background(), data, .35); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
