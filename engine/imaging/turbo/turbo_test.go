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
	"facet/internal/must"
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
	must.Do(t, jpeg.Encode(&data, im, nil))
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

func TestImageAfterDamagedOneIsRight(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	dst := make([]byte, 3*64*64)
	target := turbo.Target{Width: 64, Height: 64}
	var warned *turbo.WarningError
	cut := data[:len(data)-6] // within the pixels
	if err := l.Decode(dst, target, cut); !errors.As(err, &warned) {
		t.Errorf("cut short: got %v, want a warning", err)
	}
	if err := l.DecodeAll(dst, target, cut); err == nil {
		t.Error("cut short, all rows wanted: no error")
	}
	if err := l.Decode(dst, target, []byte("\xff\xd8\xff\xc0 this is no JPEG")); err == nil {
		t.Error("no JPEG: no error")
	}
	if err := l.Decode(dst, target, data); err != nil || dst[0] != 200 {
		t.Errorf("the next image: %v, first byte %d", err, dst[0])
	}
}

// The library decides what it writes, so each way to refuse is tried over pixels
// of a picture before: none may come back with a nil error.
func TestDecodedPixelsAreNeverOlder(t *testing.T) {
	t.Parallel()
	const old = 77
	l, data := open(t), grey(t, 64)
	for at := 2; at < len(data); at++ {
		for _, v := range []byte{0, 1, 0x3f, 0x80, 0xfe, 0xff} {
			file := bytes.Clone(data)
			file[at] = v
			for name, decode := range map[string]func([]byte, turbo.Target, []byte) error{"Decode": l.Decode, "DecodeAll": l.DecodeAll} {
				dst := bytes.Repeat([]byte{old}, 3*64*64)
				if err := decode(dst, turbo.Target{Width: 64, Height: 64}, file); err == nil && bytes.Count(dst, []byte{old}) > len(dst)/2 {
					t.Fatalf("%s, byte %d is %#x: %d of %d bytes are those of before", name, at, v, bytes.Count(dst, []byte{old}), len(dst))
				}
			}
		}
	}
}

func TestDecodeAllForgivesBytesBehindPixels(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	end := len(data) - 2
	stray := append(append(bytes.Clone(data[:end]), 1, 2, 3, 4), data[end:]...)
	dst := bytes.Repeat([]byte{77}, 3*64*64)
	target := turbo.Target{Width: 64, Height: 64}
	var warned *turbo.WarningError
	if err := l.Decode(dst, target, stray); !errors.As(err, &warned) {
		t.Errorf("got %v, want a warning", err)
	}
	if err := l.DecodeAll(dst, target, stray); err != nil || bytes.Count(dst, []byte{200}) != len(dst) {
		t.Errorf("error %v, %d of %d bytes are right", err, bytes.Count(dst, []byte{200}), len(dst))
	}
}

func TestTargetWithoutRoomIsRefused(t *testing.T) {
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

func TestUnusableLibraryIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := turbo.Open(filepath.Join(t.TempDir(), "libturbojpeg.so.0"), "libc.so.6"); !errors.Is(err, turbo.ErrMissing) {
		t.Errorf("got %v, want ErrMissing", err)
	}
}

// The library keeps a warning's text for the thread on which it decodes, and a goroutine
// changes threads.
func TestWarningIsThatOfItsFile(t *testing.T) {
	t.Parallel()
	l, data := open(t), grey(t, 64)
	cut := data[:len(data)-6]
	var texts sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			dst := make([]byte, 3*64*64)
			for range 3000 {
				texts.Store(l.Decode(dst, turbo.Target{Width: 64, Height: 64}, cut).Error(), true)
			}
		})
	}
	group.Wait()
	n := 0
	for text := range texts.Range {
		if n++; n > 1 {
			t.Errorf("another text for the same file: %v", text)
		}
	}
}
