package engine_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"facet/engine"
	"facet/engine/enginetest"
	"facet/internal/must"
)

// resident returns the bytes of memory that this process has of the system, and the most that it had
// since the last call.
func resident(t *testing.T) (now, most int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	must.Do(t, err)
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &now) // other lines differ
		_, _ = fmt.Sscanf(line, "VmHWM: %d kB", &most)
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM begins anew
		t.Fatal(err)
	}
	return now << 10, most << 10
}

func TestMemoryOfLargeImagesIsReturned(t *testing.T) {
	const (
		images = 2
		least  = 64 << 20 // that the images take
	)
	e := enginetest.New(t, engine.Config{Workers: images})
	data := asPNG(t, enlarged(t, enginetest.Photo(t, "face_recognition/obama.jpg"), 12e6))
	debug.FreeOSMemory()
	before, _ := resident(t)
	var wg sync.WaitGroup
	for range images {
		wg.Go(func() {
			if faces, err := e.ExtractLarge(t.Context(), data, .5); err != nil || len(faces) != 1 {
				t.Errorf("%d faces, error %v", len(faces), err)
			}
		})
	}
	wg.Wait()
	_, most := resident(t)
	if !e.ReleaseNow() {
		t.Error("the last image calls for no release")
	}
	after, _ := resident(t)
	t.Logf("%d MB before, at most %d MB with %d images, %d MB later", before>>20, most>>20, images, after>>20)
	if taken := most - before; taken < least || after-before > taken/3 {
		t.Errorf("the images took %d MB, and %d MB are held after the last one, want a third or less", taken>>20, (after-before)>>20)
	}
}
