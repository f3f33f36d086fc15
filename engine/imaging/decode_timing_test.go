package imaging_test

import (
	"testing"

	"facet/engine/imaging"
)

// BenchmarkHead measures what is done for an image before it waits for a worker. "bench engine" in scripts
// has the time of the decoder.
func BenchmarkHead(b *testing.B) {
	for _, name := range []string{"420.jpg", "progressive.jpg", "truth.png", "lossy.webp", "deflate.tif", "grid.heic", "plain.gif", "24.bmp"} {
		data := fixture(b, name)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := imaging.DecodeConfig(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
