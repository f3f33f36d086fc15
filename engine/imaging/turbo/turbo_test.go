package turbo_test

import (
	"bytes"
	"errors"
	"image"
	"image/jpeg"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"facet/engine/imaging/turbo"
)

// open returns the library that set-up brings, or the system's. Where there is
// none (set-up has one for Linux) there is nothing to test.
func open(t *testing.T) *turbo.Library {
	t.Helper()
	l, err := turbo.Open(filepath.Join("..", "..", "..", "assets", "lib", "libturbojpeg.so.0"), "libturbojpeg.so.0", "libturbojpeg.dylib")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatalf("%v (go run ./scripts/setup brings it)", err)
	}
	if err != nil {
		t.Skipf("needs libjpeg-turbo (on Linux set-up brings it): %v", err)
	}
	return l
}

func grey(t *testing.T, side int) []byte {
	t.Helper()
	im := image.NewGray(image.Rect(0, 0, side, side))
	for i := range im.Pix {
		im.Pix[i] = 200
	}
	var data bytes.Buffer
	if err := jpeg.Encode(&data, im, nil); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

func TestManyGoroutinesDecodeAtOnce(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	var group sync.WaitGroup
	for i := range 100 { // more than are kept
		group.Go(func() {
			side := []int{64, 32, 16, 8}[i%4]
			dst := make([]byte, 3*side*side)
			if err := l.Decode(dst, turbo.Target{Width: side, Height: side}, data); err != nil {
				t.Error(err)
			}
			if n := bytes.Count(dst, []byte{200}); n != len(dst) {
				t.Errorf("%d of %d bytes are right", n, len(dst))
			}
		})
	}
	group.Wait()
}

func TestDamageIsAWarningOrAnErrorAndTheNextImageIsRight(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	dst := make([]byte, 3*64*64)
	target := turbo.Target{Width: 64, Height: 64}
	var warned *turbo.WarningError
	if err := l.Decode(dst, target, data[:len(data)-2]); !errors.As(err, &warned) {
		t.Errorf("without its end: got %v, want a warning", err)
	}
	target.Warnings = turbo.Ignore
	if err := l.Decode(dst, target, data[:len(data)-2]); err != nil {
		t.Errorf("without its end, warnings ignored: %v", err)
	}
	if err := l.Decode(dst, target, []byte("\xff\xd8\xff\xc0 this is no JPEG")); err == nil {
		t.Error("no JPEG: no error")
	}
	if err := l.Decode(dst, target, data); err != nil || dst[0] != 200 {
		t.Errorf("the next image: %v, first byte %d", err, dst[0])
	}
}

func TestATargetWithoutRoomIsRefused(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	for _, target := range []turbo.Target{{Width: 64, Height: 65}, {Width: 64, Height: 64, Pixels: turbo.CMYK}, {Width: 0, Height: 64}, {Width: -1, Height: -1}} {
		if err := l.Decode(make([]byte, 3*64*64), target, data); err == nil {
			t.Errorf("%+v: no error", target)
		}
	}
	if err := l.Decode(make([]byte, 3*64*64), turbo.Target{Width: 64, Height: 64}, nil); err == nil {
		t.Error("no data: no error")
	}
}

func TestALibraryThatIsNotThereOrNotItIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := turbo.Open(filepath.Join(t.TempDir(), "libturbojpeg.so.0"), "libc.so.6"); !errors.Is(err, turbo.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}
