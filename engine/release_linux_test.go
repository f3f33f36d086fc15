package engine_test

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/engine/enginetest"
)

// resident returns the bytes of memory that this process has of the system.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var all, pages int64
	if _, err := fmt.Sscan(string(text), &all, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// enlargedPNG returns a sample portrait, both sides times n, as PNG.
func enlargedPNG(t *testing.T, n int) []byte {
	t.Helper()
	im, err := jpeg.Decode(bytes.NewReader(enginetest.Photo(t, "face_recognition/obama.jpg")))
	if err != nil {
		t.Fatal(err)
	}
	b := im.Bounds()
	large := image.NewRGBA(image.Rect(0, 0, n*b.Dx(), n*b.Dy()))
	for y := range n * b.Dy() {
		for x := range n * b.Dx() {
			large.Set(x, y, im.At(x/n, y/n))
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&out, large); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestMemoryOfLargeImagesIsReturned(t *testing.T) {
	const (
		images = 4
		more   = 48 << 20 // than before: each worker keeps up to 12 MB of pixels
		within = 20 * time.Second
	)
	e := enginetest.New(t, engine.Config{Workers: images})
	data := enlargedPNG(t, 3)
	debug.FreeOSMemory()
	before, most := resident(t), int64(0)
	var wg sync.WaitGroup
	for range images {
		wg.Go(func() {
			if faces, err := e.ExtractLarge(t.Context(), data, .5); err != nil || len(faces) != 1 {
				t.Errorf("%d faces, error %v", len(faces), err)
			}
		})
	}
	wg.Wait()
	most = resident(t)
	began := time.Now()
	for resident(t) > before+more && time.Since(began) < within {
		time.Sleep(100 * time.Millisecond)
	}
	after := resident(t)
	t.Logf("%d MB before, %d MB with the last of %d images, %d MB %s later", before>>20, most>>20, images, after>>20, time.Since(began).Round(time.Millisecond))
	if after > before+more {
		t.Errorf("%d MB are held %s after the last image, want %d or less", after>>20, within, (before+more)>>20)
	}
	if most < before+2*more {
		t.Errorf("the images took %d MB, which shows nothing", (most-before)>>20)
	}
}
