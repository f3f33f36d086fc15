package imaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	colour "image/color" //nolint:misspell // the standard library spells it so
	"image/jpeg"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"facet/engine/imaging/turbo"
	"facet/internal/pinned"
)

// loading guards the loading of library and installed. library is nil until it is loaded.
var (
	loading   sync.Mutex
	library   atomic.Pointer[turbo.Library]
	installed []*os.File // stay open: see pinned.LoadName
)

// Beside says which library LoadTurbo takes from its folder.
type Beside int

// Installed is the library that set-up installs, by its SHA-256, and Any whatever the folder has.
const (
	Installed Beside = iota
	Any
)

// LoadTurbo makes the whole process decode JPEG images with libjpeg-turbo from now on, four to six
// times as fast. It looks for libturbojpeg in the folder dir, unless that is empty, and then where
// the system's loader looks. It decodes a small image to check that the library agrees with the
// standard library. Without the library, or after an error, the standard library decodes. After a
// success, further calls do nothing.
//
// With Installed, the error wraps a *pinned.ChangedError if the library in dir is another one than
// set-up installs.
func LoadTurbo(dir string, beside Beside) error {
	loading.Lock()
	defer loading.Unlock()
	if library.Load() != nil {
		return nil
	}
	l, err := openTurbo(dir, beside)
	if err != nil {
		return fmt.Errorf("load libjpeg-turbo: %w", err)
	}
	if err := try(l); err != nil {
		return fmt.Errorf("load libjpeg-turbo: %s: %w", filepath.Base(l.Name()), err)
	}
	library.Store(l)
	return nil
}

func openTurbo(dir string, beside Beside) (*turbo.Library, error) {
	names := []string{"libturbojpeg.so.0", "libturbojpeg.so"}
	if runtime.GOOS == "darwin" {
		names = []string{"libturbojpeg.dylib", "libturbojpeg.0.dylib"}
	}
	var files []string
	for _, name := range names {
		hash := pinned.Hash(name)
		if dir == "" || beside == Installed && hash == "" {
			continue
		}
		// Absolute, so that the loader does not look elsewhere.
		file, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if beside == Any {
			files = append(files, file)
			continue
		}
		f, err := pinned.Open(file, hash)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		installed = append(installed, f)
		if l, err := turbo.OpenFile(f); err == nil {
			return l, nil
		}
	}
	return turbo.Open(append(files, names...)...)
}

// JPEGDecoder names the JPEG decoder that this process uses now, for logs and the version.
func JPEGDecoder() string {
	if l := library.Load(); l != nil {
		return "libjpeg-turbo (" + filepath.Base(l.Name()) + ")"
	}
	return "Go standard library"
}

// try compares the library with the standard library on a small picture.
func try(l *turbo.Library) error {
	const side, within = 48, 6
	picture := image.NewRGBA(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			picture.SetRGBA(x, y, colour.RGBA{R: uint8(5 * x), G: uint8(5 * y), B: uint8(2 * (x + y)), A: 255})
		}
	}
	var data bytes.Buffer
	if err := jpeg.Encode(&data, picture, nil); err != nil {
		return err
	}
	var got, want Image
	for _, d := range []struct {
		im *Image
		by *turbo.Library
	}{{&got, l}, {&want, nil}} {
		c := Config{orientation: 1}
		if err := configJPEG(&c, data.Bytes()); err != nil {
			return err
		}
		c.source.(*jpegImage).library = d.by
		if err := c.DecodeInto(context.Background(), d.im, data.Bytes(), Whole); err != nil {
			return err
		}
	}
	for i, v := range want.Pix {
		if d := int(v) - int(got.Pix[i]); d < -within || d > within {
			return errors.New("it decodes a known picture wrongly")
		}
	}
	return nil
}
