package engine_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"testing"

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

func TestMemoryOfLargeImagesIsReturned(t *testing.T) {
	const (
		images = 4
		more   = 48 << 20 // than before: each worker keeps up to 12 MB of pixels
	)
	e := enginetest.New(t, engine.Config{Workers: images})
	data := asPNG(t, enlarged(t, enginetest.Photo(t, "face_recognition/obama.jpg"), 9e6))
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
	if !e.ReleaseNow() {
		t.Error("the last image calls for no release")
	}
	after := resident(t)
	t.Logf("%d MB before, %d MB with the last of %d images, %d MB later", before>>20, most>>20, images, after>>20)
	if after > before+more {
		t.Errorf("%d MB are held after the last image, want %d or less", after>>20, (before+more)>>20)
	}
	if most < before+2*more {
		t.Errorf("the images took %d MB, which shows nothing", (most-before)>>20)
	}
}
