package imaging_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"path/filepath"
	"testing"
	"time"

	"facet/engine/enginetest"
	"facet/engine/imaging"
	"facet/engine/imaging/turbo"
)

// enlarged is a photo at another size, as JPEG: nearest pixels, then compressed
// like a camera does.
func enlarged(b *testing.B, name string, width, height int) []byte {
	b.Helper()
	src, err := jpeg.Decode(bytes.NewReader(enginetest.Photo(b, name)))
	if err != nil {
		b.Fatal(err)
	}
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	r := src.Bounds()
	for y := range height {
		for x := range width {
			out.Set(x, y, src.At(r.Min.X+x*r.Dx()/width, r.Min.Y+y*r.Dy()/height))
		}
	}
	var data bytes.Buffer
	if err := jpeg.Encode(&data, out, &jpeg.Options{Quality: 90}); err != nil {
		b.Fatal(err)
	}
	return data.Bytes()
}

// best returns the shortest of a few runs.
func best(b *testing.B, f func() error) time.Duration {
	b.Helper()
	least := time.Hour
	for range 5 {
		began := time.Now()
		if err := f(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(began))
	}
	return least
}

// BenchmarkDecode reports, beside its time, how many times as long the standard
// library takes for the whole picture (x-std), and how our time compares with the
// bare call of libjpeg-turbo (x-raw; 1 is the limit). Both are taken in the same
// run, as the shortest of five.
func BenchmarkDecode(b *testing.B) {
	lib, err := turbo.Open(filepath.Join("..", "..", "assets", "lib", "libturbojpeg.so.0"), "libturbojpeg.so.0", "libturbojpeg.dylib")
	if err != nil {
		b.Log(err)
	}
	small := enginetest.Photo(b, "face_recognition/obama.jpg")
	for _, photo := range []struct {
		name string
		data []byte
	}{{"1MP", small}, {"12MP", enlarged(b, "face-api/sample1.jpg", 4032, 3024)}} {
		c, err := imaging.DecodeConfig(photo.data)
		if err != nil {
			b.Fatal(err)
		}
		for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter, imaging.Eighth} {
			b.Run(fmt.Sprintf("%s/shrink=%d", photo.name, s), func(b *testing.B) {
				im := new(imaging.Image)
				ours := func() error { return c.DecodeInto(b.Context(), im, photo.data, s) }
				standard := best(b, func() error {
					_, err := jpeg.Decode(bytes.NewReader(photo.data))
					return err
				})
				least := best(b, ours)
				raw := time.Duration(0)
				if lib != nil {
					t := turbo.Target{Width: (c.Width + int(s) - 1) / int(s), Height: (c.Height + int(s) - 1) / int(s), Pixels: turbo.RGB}
					dst := make([]uint8, 3*t.Width*t.Height)
					raw = best(b, func() error { return lib.Decode(dst, t, photo.data) })
				}
				b.ReportAllocs()
				for b.Loop() {
					if err := ours(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(standard)/float64(least), "x-std") // a loop clears what was reported before
				if raw > 0 {
					b.ReportMetric(float64(least)/float64(raw), "x-raw")
				}
			})
		}
	}
}

// BenchmarkHead is what is done for an image before it waits for a worker.
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
